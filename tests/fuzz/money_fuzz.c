/* Money and decimals: read and printed without loss, counted exactly, refused where there is no
 * room.
 *
 *     amount
 *     currency
 *     rate
 *     currency that it is converted to
 *     another amount, of the first currency */
#include "fuzz.h"

#include <commandbus/money.h>

__extension__ typedef __int128 wide;

static void check_decimal(const char *text)
{
    char printed[CB_DECIMAL_TEXT];
    cb_decimal number, again;
    cb_error e = { 0 };

    if (!cb_decimal_parse(text, &number, &e)) {
        fuzz_refused(&e, CB_INVALID_DATA);
        return;
    }
    FUZZ_CHECK(number.scale >= 0 && number.scale <= 18, "scale %d", number.scale);
    FUZZ_CHECK(cb_decimal_print(&number, printed), "%s is not printed", text);
    bool is_minus_zero = text[0] == '-' && number.digits == 0;
    FUZZ_CHECK(strcmp(printed, text + is_minus_zero) == 0, "%s became %s", text, printed);
    FUZZ_CHECK(cb_decimal_parse(printed, &again, &e) && again.digits == number.digits &&
                   again.scale == number.scale,
               "%s", printed);
}

static bool read_money(const char *amount, const char *currency, cb_money *money)
{
    char printed[CB_DECIMAL_TEXT];
    cb_money again;
    cb_error e = { 0 };

    if (!cb_money_parse(amount, currency, money, &e)) {
        fuzz_refused(&e, CB_INVALID_DATA);
        return false;
    }
    FUZZ_CHECK(strcmp(money->currency, currency) == 0, "%s", money->currency);
    FUZZ_CHECK(cb_money_print(money, printed) && cb_money_parse(printed, currency, &again, &e) &&
                   again.minor == money->minor,
               "%s became %s", amount, printed);
    return true;
}

/* The result is the nearest whole number to the exact quotient, of two the even one. */
static void check_converted(const cb_money *from, const cb_decimal *rate, const char *currency)
{
    int shift = cb_currency_exponent(currency) - cb_currency_exponent(from->currency) - rate->scale;
    wide exact = (wide)from->minor * rate->digits, unit = 1;
    cb_money to = { .minor = 77 };
    cb_error e = { 0 };

    for (int i = 0; i < (shift < 0 ? -shift : shift); i++)
        unit *= 10;
    if (!cb_money_convert(from, rate, currency, &to, &e)) {
        fuzz_refused(&e, CB_INVALID_DATA);
        FUZZ_CHECK(to.minor == 77, "a refusal has changed its result");
        /* Only what does not fit is refused. */
        wide most = (wide)INT64_MAX, magnitude = exact < 0 ? -exact : exact;
        FUZZ_CHECK(shift < 0 ? magnitude / unit >= most : magnitude > most / unit, "refused");
        return;
    }
    if (shift >= 0) {
        FUZZ_CHECK((wide)to.minor == exact * unit, "not exact");
        return;
    }
    wide off = exact - (wide)to.minor * unit;
    wide twice = 2 * (off < 0 ? -off : off);
    FUZZ_CHECK(twice <= unit, "not the nearest");
    FUZZ_CHECK(twice < unit || to.minor % 2 == 0, "half goes to the even neighbour");
}

static void check_sums(const cb_money *a, const cb_money *b)
{
    cb_money sum, back;
    cb_error e = { 0 };
    int order = 0;

    FUZZ_CHECK(cb_money_compare(a, b, &order, &e) &&
                   order == (a->minor > b->minor) - (a->minor < b->minor),
               "order %d", order);
    if (!cb_money_add(a, b, &sum, &e)) {
        wide exact = (wide)a->minor + b->minor;
        FUZZ_CHECK(exact > INT64_MAX || exact < INT64_MIN, "refused");
        return;
    }
    FUZZ_CHECK(cb_money_subtract(&sum, b, &back, &e) && back.minor == a->minor, "%s", e.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_SPLIT(in, data, size);
    const char *currency = fuzz_line(&in, 1), *other = fuzz_line(&in, 3);
    cb_money money, another;
    cb_decimal rate;
    cb_error e = { 0 };

    check_decimal(fuzz_line(&in, 0));
    check_decimal(fuzz_line(&in, 2));
    if (!read_money(fuzz_line(&in, 0), currency, &money))
        return 0;
    if (cb_currency_exponent(other) >= 0 && cb_decimal_parse(fuzz_line(&in, 2), &rate, &e))
        check_converted(&money, &rate, other);
    if (read_money(fuzz_line(&in, 4), currency, &another))
        check_sums(&money, &another);
    return 0;
}
