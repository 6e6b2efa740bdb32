/* Counting money: exact, within one currency, and refused where it does not fit. */
#include <commandbus/money.h>
#include <string.h>

#include "decimal.h"

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
    return cb_fail(e, CB_INVALID_DATA, "the currency is none of ISO 4217");
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
        return cb_fail(e, CB_INVALID_DATA, "the rate has a scale that is not 0 to 18");

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
