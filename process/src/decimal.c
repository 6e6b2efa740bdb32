/* Decimal numbers as text, strictly: one way to write a number, and nothing is rounded on the way in. */
#include "decimal.h"

#include <string.h>

int64_t power_of_ten(int n)
{
    int64_t power = 1;

    while (n-- > 0)
        power *= 10;
    return power;
}

/* Takes one digit more; counted downwards, where there is room for one more than upwards. */
static bool append(int64_t *negated, char digit)
{
    return !__builtin_mul_overflow(*negated, 10, negated) &&
           !__builtin_sub_overflow(*negated, digit - '0', negated);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *decimal_read(const char *text, int max_scale, cb_decimal *ret)
{
    static const char malformed[] = "is not written like 12.34", too_large[] = "is too large";
    bool negative = *text == '-';
    int64_t negated = 0;
    int scale = 0;

    text += negative;
    if (!is_digit(text[0]) || (text[0] == '0' && is_digit(text[1])))
        return malformed;
    for (; is_digit(*text); text++) {
        if (!append(&negated, *text))
            return too_large;
    }
    if (*text == '.') {
        for (text++; is_digit(*text); text++, scale++) {
            if (scale == max_scale)
                return "has too many digits behind the point";
            if (!append(&negated, *text))
                return too_large;
        }
        if (scale == 0)
            return malformed;
    }
    if (*text)
        return malformed;
    if (!negative && negated == INT64_MIN)
        return too_large;
    *ret = (cb_decimal){ negative ? negated : -negated, scale };
    return NULL;
}

void decimal_write(int64_t digits, int scale, char text[CB_DECIMAL_TEXT])
{
    uint64_t rest = digits < 0 ? -(uint64_t)digits : (uint64_t)digits;
    char backwards[CB_DECIMAL_TEXT];
    int n = 0;

    for (int i = 0; rest > 0 || i <= scale; i++) {
        if (i == scale && scale > 0)
            backwards[n++] = '.';
        backwards[n++] = (char)('0' + rest % 10);
        rest /= 10;
    }
    if (digits < 0)
        backwards[n++] = '-';
    while (n > 0)
        *text++ = backwards[--n];
    *text = '\0';
}

bool cb_decimal_parse(const char *text, cb_decimal *ret, cb_error *e)
{
    const char *problem = text ? decimal_read(text, DECIMAL_MAX_SCALE, ret) : "is missing";

    return !problem || cb_fail(e, CB_INVALID_DATA, "the number %s", problem);
}

bool cb_decimal_print(const cb_decimal *decimal, char text[CB_DECIMAL_TEXT])
{
    if (decimal->scale < 0 || decimal->scale > DECIMAL_MAX_SCALE)
        return false;
    decimal_write(decimal->digits, decimal->scale, text);
    return true;
}
