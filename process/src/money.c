/* Money: the currencies of ISO 4217, decimal numbers as text, counting within one currency, and
 * both as fields. Exact: nothing is rounded on the way in, and what does not fit is refused. */
#include <commandbus/money.h>
#include <stdlib.h>
#include <string.h>

#include "fields_types.h"

enum {
    DECIMAL_MAX_SCALE = 18
};

/* ---- currencies ----
 *
 * List one of ISO 4217 as published on 2026-01-01. Metals, units of account and test codes, for
 * which the standard names no exponent, are not money here. */

typedef struct {
    char code[4];
    signed char exponent;
} currency_entry;

/* In the order of the codes: it is searched by halves. */
static const currency_entry currencies[] = {
    { "AED", 2 }, { "AFN", 2 }, { "ALL", 2 }, { "AMD", 2 }, { "AOA", 2 }, { "ARS", 2 },
    { "AUD", 2 }, { "AWG", 2 }, { "AZN", 2 }, { "BAM", 2 }, { "BBD", 2 }, { "BDT", 2 },
    { "BHD", 3 }, { "BIF", 0 }, { "BMD", 2 }, { "BND", 2 }, { "BOB", 2 }, { "BOV", 2 },
    { "BRL", 2 }, { "BSD", 2 }, { "BTN", 2 }, { "BWP", 2 }, { "BYN", 2 }, { "BZD", 2 },
    { "CAD", 2 }, { "CDF", 2 }, { "CHE", 2 }, { "CHF", 2 }, { "CHW", 2 }, { "CLF", 4 },
    { "CLP", 0 }, { "CNY", 2 }, { "COP", 2 }, { "COU", 2 }, { "CRC", 2 }, { "CUP", 2 },
    { "CVE", 2 }, { "CZK", 2 }, { "DJF", 0 }, { "DKK", 2 }, { "DOP", 2 }, { "DZD", 2 },
    { "EGP", 2 }, { "ERN", 2 }, { "ETB", 2 }, { "EUR", 2 }, { "FJD", 2 }, { "FKP", 2 },
    { "GBP", 2 }, { "GEL", 2 }, { "GHS", 2 }, { "GIP", 2 }, { "GMD", 2 }, { "GNF", 0 },
    { "GTQ", 2 }, { "GYD", 2 }, { "HKD", 2 }, { "HNL", 2 }, { "HTG", 2 }, { "HUF", 2 },
    { "IDR", 2 }, { "ILS", 2 }, { "INR", 2 }, { "IQD", 3 }, { "IRR", 2 }, { "ISK", 0 },
    { "JMD", 2 }, { "JOD", 3 }, { "JPY", 0 }, { "KES", 2 }, { "KGS", 2 }, { "KHR", 2 },
    { "KMF", 0 }, { "KPW", 2 }, { "KRW", 0 }, { "KWD", 3 }, { "KYD", 2 }, { "KZT", 2 },
    { "LAK", 2 }, { "LBP", 2 }, { "LKR", 2 }, { "LRD", 2 }, { "LSL", 2 }, { "LYD", 3 },
    { "MAD", 2 }, { "MDL", 2 }, { "MGA", 2 }, { "MKD", 2 }, { "MMK", 2 }, { "MNT", 2 },
    { "MOP", 2 }, { "MRU", 2 }, { "MUR", 2 }, { "MVR", 2 }, { "MWK", 2 }, { "MXN", 2 },
    { "MXV", 2 }, { "MYR", 2 }, { "MZN", 2 }, { "NAD", 2 }, { "NGN", 2 }, { "NIO", 2 },
    { "NOK", 2 }, { "NPR", 2 }, { "NZD", 2 }, { "OMR", 3 }, { "PAB", 2 }, { "PEN", 2 },
    { "PGK", 2 }, { "PHP", 2 }, { "PKR", 2 }, { "PLN", 2 }, { "PYG", 0 }, { "QAR", 2 },
    { "RON", 2 }, { "RSD", 2 }, { "RUB", 2 }, { "RWF", 0 }, { "SAR", 2 }, { "SBD", 2 },
    { "SCR", 2 }, { "SDG", 2 }, { "SEK", 2 }, { "SGD", 2 }, { "SHP", 2 }, { "SLE", 2 },
    { "SOS", 2 }, { "SRD", 2 }, { "SSP", 2 }, { "STN", 2 }, { "SVC", 2 }, { "SYP", 2 },
    { "SZL", 2 }, { "THB", 2 }, { "TJS", 2 }, { "TMT", 2 }, { "TND", 3 }, { "TOP", 2 },
    { "TRY", 2 }, { "TTD", 2 }, { "TWD", 2 }, { "TZS", 2 }, { "UAH", 2 }, { "UGX", 0 },
    { "USD", 2 }, { "USN", 2 }, { "UYI", 0 }, { "UYU", 2 }, { "UYW", 4 }, { "UZS", 2 },
    { "VED", 2 }, { "VES", 2 }, { "VND", 0 }, { "VUV", 0 }, { "WST", 2 }, { "XAD", 2 },
    { "XAF", 0 }, { "XCD", 2 }, { "XCG", 2 }, { "XOF", 0 }, { "XPF", 0 }, { "YER", 2 },
    { "ZAR", 2 }, { "ZMW", 2 }, { "ZWG", 2 }
};

static int compare_code(const void *code, const void *entry)
{
    return strcmp(code, ((const currency_entry *)entry)->code);
}

int cb_currency_exponent(const char *code)
{
    const size_t n = sizeof currencies / sizeof *currencies;
    const currency_entry *found =
        code ? bsearch(code, currencies, n, sizeof *currencies, compare_code) : NULL;

    return found ? found->exponent : -1;
}

/* ---- decimal numbers: one way to write a number ---- */

/* 10^n, n 0 to 18. */
static int64_t power_of_ten(int n)
{
    int64_t power = 1;

    while (n-- > 0)
        power *= 10;
    return power;
}

/* Takes one digit more; counted downwards, where there is room for one more than upwards. */
static bool append_digit(int64_t *negated, char digit)
{
    return !__builtin_mul_overflow(*negated, 10, negated) &&
           !__builtin_sub_overflow(*negated, digit - '0', negated);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits as written, the scale as many as stand behind the point: "1.50" is { 150, 2 }. NULL, or
 * what is wrong with the text (static storage). */
static const char *decimal_read(const char *text, int max_scale, cb_decimal *ret)
{
    static const char malformed[] = "must be written like 12.34", too_large[] = "is too large";
    bool negative = *text == '-';
    int64_t negated = 0;
    int scale = 0;

    text += negative;
    if (!is_digit(text[0]) || (text[0] == '0' && is_digit(text[1])))
        return malformed;
    for (; is_digit(*text); text++) {
        if (!append_digit(&negated, *text))
            return too_large;
    }
    if (*text == '.') {
        for (text++; is_digit(*text); text++, scale++) {
            if (scale == max_scale)
                return "has too many digits after the point";
            if (!append_digit(&negated, *text))
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

/* The scale must be 0 to 18. */
static void decimal_write(int64_t digits, int scale, char text[CB_DECIMAL_TEXT])
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

/* ---- amounts ---- */

/* Holds the product of any two 64-bit numbers. */
__extension__ typedef __int128 wide;

/* The currency of a struct that somebody may have filled carelessly. */
static int exponent_of(const cb_money *money)
{
    return memchr(money->currency, '\0', sizeof money->currency)
               ? cb_currency_exponent(money->currency)
               : -1;
}

static bool unknown_currency(cb_error *e)
{
    return cb_fail(e, CB_INVALID_DATA, "the currency is not in ISO 4217");
}

static bool too_large(cb_error *e)
{
    return cb_fail(e, CB_INVALID_DATA, "the amount is too large");
}

static cb_money money_of(int64_t minor, const char *currency)
{
    cb_money money = { .minor = minor };

    memcpy(money.currency, currency, 3);
    return money;
}

bool cb_money_parse(const char *amount, const char *currency, cb_money *ret, cb_error *e)
{
    int exponent = cb_currency_exponent(currency);
    cb_decimal number;
    int64_t minor;

    if (exponent < 0)
        return unknown_currency(e);
    const char *problem = amount ? decimal_read(amount, exponent, &number) : "is missing";
    if (problem)
        return cb_fail(e, CB_INVALID_DATA, "the amount %s", problem);
    if (__builtin_mul_overflow(number.digits, power_of_ten(exponent - number.scale), &minor))
        return too_large(e);
    *ret = money_of(minor, currency);
    return true;
}

bool cb_money_print(const cb_money *money, char text[CB_DECIMAL_TEXT])
{
    int exponent = exponent_of(money);

    if (exponent < 0)
        return false;
    decimal_write(money->minor, exponent, text);
    return true;
}

static bool same_currency(const cb_money *a, const cb_money *b, cb_error *e)
{
    if (exponent_of(a) < 0 || exponent_of(b) < 0)
        return unknown_currency(e);
    if (strcmp(a->currency, b->currency) != 0)
        return cb_fail(e, CB_INVALID_DATA, "%s and %s are different currencies", a->currency,
                       b->currency);
    return true;
}

bool cb_money_add(const cb_money *a, const cb_money *b, cb_money *ret, cb_error *e)
{
    int64_t sum;

    if (!same_currency(a, b, e))
        return false;
    if (__builtin_add_overflow(a->minor, b->minor, &sum))
        return too_large(e);
    *ret = money_of(sum, a->currency);
    return true;
}

bool cb_money_subtract(const cb_money *a, const cb_money *b, cb_money *ret, cb_error *e)
{
    int64_t difference;

    if (!same_currency(a, b, e))
        return false;
    if (__builtin_sub_overflow(a->minor, b->minor, &difference))
        return too_large(e);
    *ret = money_of(difference, a->currency);
    return true;
}

bool cb_money_compare(const cb_money *a, const cb_money *b, int *ret, cb_error *e)
{
    if (!same_currency(a, b, e))
        return false;
    *ret = (a->minor > b->minor) - (a->minor < b->minor);
    return true;
}

static bool fits(wide number)
{
    return number >= INT64_MIN && number <= INT64_MAX;
}

/* Half goes to the even neighbour, so that the errors of many roundings do not add up. */
static wide divide_half_even(wide number, wide divisor)
{
    wide quotient = number / divisor, rest = number % divisor; /* towards zero */
    int sign = number < 0 ? -1 : 1;
    wide twice = 2 * (rest < 0 ? -rest : rest);

    if (twice > divisor || (twice == divisor && quotient % 2 != 0))
        quotient += sign;
    return quotient;
}

static wide wide_power_of_ten(int n)
{
    return n > DECIMAL_MAX_SCALE
               ? (wide)power_of_ten(DECIMAL_MAX_SCALE) * power_of_ten(n - DECIMAL_MAX_SCALE)
               : power_of_ten(n);
}

bool cb_money_convert(const cb_money *money, const cb_decimal *rate, const char *currency,
                      cb_money *ret, cb_error *e)
{
    int from = exponent_of(money), to = cb_currency_exponent(currency);

    if (from < 0 || to < 0)
        return unknown_currency(e);
    if (rate->scale < 0 || rate->scale > DECIMAL_MAX_SCALE)
        return cb_fail(e, CB_INVALID_DATA, "the scale of the rate must be 0 to 18");

    wide product = (wide)money->minor * rate->digits;
    int shift = to - from - rate->scale; /* powers of ten between the product and the result */
    if (shift < 0)
        product = divide_half_even(product, wide_power_of_ten(-shift));
    else if (fits(product)) /* what does not fit now will not fit then */
        product *= wide_power_of_ten(shift);
    if (!fits(product))
        return too_large(e);
    *ret = money_of((int64_t)product, currency);
    return true;
}

bool cb_money_multiply(const cb_money *money, const cb_decimal *factor, cb_money *ret, cb_error *e)
{
    if (exponent_of(money) < 0)
        return unknown_currency(e);
    return cb_money_convert(money, factor, money->currency, ret, e);
}

/* ---- as fields: text on the wire, for a JSON number would be a double on its way ---- */

bool field_money_equal(const cb_field *field, const void *a, const void *b)
{
    const cb_money *x = a, *y = b;

    (void)field;
    return x->minor == y->minor && strncmp(x->currency, y->currency, sizeof x->currency) == 0;
}

/* Adds a text to an object. */
static const char *add_text(json_object *object, const char *key, const char *text)
{
    OWNED(json_object) value = json_object_new_string(text);

    if (!value || json_object_object_add(object, key, value) != 0)
        return field_no_memory;
    json_object_take(&value);
    return NULL;
}

const char *field_money_write(field_place *at, const void *member, json_object **ret)
{
    const cb_money *money = member;
    char amount[CB_DECIMAL_TEXT];

    (void)at;
    if (money->minor == 0 && money->currency[0] == '\0')
        return NULL;
    if (!cb_money_print(money, amount))
        return "has a currency that is not in ISO 4217";

    OWNED(json_object) object = json_object_new_object();
    if (!object || add_text(object, "amount", amount) ||
        add_text(object, "currency", money->currency))
        return field_no_memory;
    *ret = json_object_take(&object);
    return NULL;
}

const char *field_money_read(field_place *at, json_object *value, void *member)
{
    json_object *amount = NULL, *currency = NULL;

    (void)at;
    if (!value)
        return NULL;
    if (!json_object_is_type(value, json_type_object) ||
        !json_object_object_get_ex(value, "amount", &amount) ||
        !json_object_object_get_ex(value, "currency", &currency) ||
        !cb_money_parse(field_text_of(amount), field_text_of(currency), member, NULL))
        return "must be money like {\"amount\":\"12.34\",\"currency\":\"EUR\"} or null";
    return NULL;
}

bool field_decimal_equal(const cb_field *field, const void *a, const void *b)
{
    const cb_decimal *x = a, *y = b;

    (void)field;
    return x->digits == y->digits && x->scale == y->scale;
}

const char *field_decimal_write(field_place *at, const void *member, json_object **ret)
{
    char text[CB_DECIMAL_TEXT];

    (void)at;
    if (!cb_decimal_print(member, text))
        return "must have a scale of 0 to 18";
    return field_string(text, ret);
}

const char *field_decimal_read(field_place *at, json_object *value, void *member)
{
    (void)at;
    if (!cb_decimal_parse(field_text_of(value), member, NULL))
        return "must be a decimal in quotes, like \"1.0837\"";
    return NULL;
}
