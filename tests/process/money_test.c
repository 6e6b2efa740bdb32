/* Money is exact, of one currency, and refused where it does not fit. STP.26. */
#include "expect.h"
#include "seed.h"

#include <commandbus/handler.h>
#include <commandbus/money.h>
#include <criterion/criterion.h>

static cb_money money(const char *amount, const char *currency)
{
    cb_money ret = { 0 };
    cb_error e;

    expect_ok(cb_money_parse(amount, currency, &ret, &e), e);
    return ret;
}

static cb_decimal decimal(const char *text)
{
    cb_decimal ret = { 0, 0 };
    cb_error e;

    expect_ok(cb_decimal_parse(text, &ret, &e), e);
    return ret;
}

#define expect_money(expected, expected_currency, found)        \
    do {                                                        \
        cb_money found_ = (found);                              \
        char text_[CB_DECIMAL_TEXT];                            \
        cr_assert(cb_money_print(&found_, text_));              \
        cr_assert_str_eq(text_, (expected));                    \
        cr_assert_str_eq(found_.currency, (expected_currency)); \
    } while (0)

static cb_money converted(const char *amount, const char *from, const char *rate, const char *to)
{
    cb_money source = money(amount, from), ret;
    cb_decimal factor = decimal(rate);
    cb_error e;

    expect_ok(cb_money_convert(&source, &factor, to, &ret, &e), e);
    return ret;
}

Test(money, a_currency_has_the_exponent_of_iso_4217)
{
    static const struct {
        const char *code;
        int exponent;
    } known[] = { { "AED", 2 },  { "EUR", 2 }, { "JPY", 0 },  { "KWD", 3 },   { "CLF", 4 },
                  { "UYW", 4 },  { "TND", 3 }, { "VND", 0 },  { "ZWG", 2 },   { "XOF", 0 },
                  { "XCG", 2 },  { "MRU", 2 }, { "eur", -1 }, { "BGN", -1 },  { "XAU", -1 },
                  { "XXX", -1 }, { "", -1 },   { "EU", -1 },  { "EURO", -1 }, { NULL, -1 } };

    for (size_t i = 0; i < CB_COUNT(known); i++)
        cr_assert_eq(cb_currency_exponent(known[i].code), known[i].exponent, "%s",
                     known[i].code ? known[i].code : "NULL");
}

/* The table is searched by halves: an entry out of order would not be found. */
Test(money, every_three_letters_are_a_currency_or_not_165_times)
{
    int found[5] = { 0 };

    for (int i = 0; i < 26 * 26 * 26; i++) {
        char code[4] = { (char)('A' + i / 676), (char)('A' + i / 26 % 26), (char)('A' + i % 26) };
        int exponent = cb_currency_exponent(code);
        if (exponent >= 0)
            found[exponent]++;
    }
    cr_assert_eq(found[0], 17);
    cr_assert_eq(found[2], 139);
    cr_assert_eq(found[3], 7);
    cr_assert_eq(found[4], 2);
}

Test(money, an_amount_is_kept_in_minor_units)
{
    cr_assert_eq(money("12.34", "EUR").minor, 1234);
    cr_assert_eq(money("12.3", "EUR").minor, 1230);
    cr_assert_eq(money("12", "EUR").minor, 1200);
    cr_assert_eq(money("-0.05", "EUR").minor, -5);
    cr_assert_eq(money("12", "JPY").minor, 12);
    cr_assert_eq(money("0.001", "KWD").minor, 1);
    cr_assert_eq(money("92233720368547758.07", "EUR").minor, INT64_MAX);
    cr_assert_eq(money("-92233720368547758.08", "EUR").minor, INT64_MIN);
}

Test(money, an_amount_is_printed_with_all_digits_of_its_currency)
{
    expect_money("12.30", "EUR", money("12.3", "EUR"));
    expect_money("-0.05", "EUR", money("-0.05", "EUR"));
    expect_money("0.00", "EUR", money("0", "EUR"));
    expect_money("0", "JPY", money("-0", "JPY"));
    expect_money("-92233720368547758.08", "EUR", money("-92233720368547758.08", "EUR"));
    expect_money("922337203685477.5807", "CLF", money("922337203685477.5807", "CLF"));

    char text[CB_DECIMAL_TEXT];
    cr_assert_not(cb_money_print(&(cb_money){ 1, "ABC" }, text));
    cr_assert_not(cb_money_print(&(cb_money){ 1, { 'E', 'U', 'R', 'O' } }, text));
}

Test(money, an_amount_that_is_not_plainly_one_is_refused)
{
    static const char *const bad[] = { "",
                                       "-",
                                       ".",
                                       ".5",
                                       "5.",
                                       "+5",
                                       "05",
                                       "-05",
                                       "00",
                                       " 5",
                                       "5 ",
                                       "5,00",
                                       "1e2",
                                       "0x5",
                                       "1 000",
                                       "1.2.3",
                                       "--5",
                                       "5-",
                                       "1.234",
                                       "1.000",
                                       "NaN",
                                       "١",
                                       "12.3a",
                                       "1,000.00",
                                       "92233720368547758.08",
                                       "-92233720368547758.09",
                                       "92233720368547759",
                                       "99999999999999999999999999" };
    cb_money ret = { 42, "USD" };
    cb_error e;

    for (size_t i = 0; i < CB_COUNT(bad); i++)
        expect_error(CB_INVALID_DATA, cb_money_parse(bad[i], "EUR", &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_parse("1.0", "JPY", &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_parse(NULL, "EUR", &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_parse("1", NULL, &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_parse("1", "XXX", &ret, &e), e);
    cr_assert_eq(ret.minor, 42);
}

Test(money, sums_stay_in_one_currency)
{
    cb_money a = money("0.10", "EUR"), b = money("0.20", "EUR"), c = money("1.00", "USD"), ret;
    int order;
    cb_error e;

    expect_ok(cb_money_add(&a, &b, &ret, &e), e);
    expect_money("0.30", "EUR", ret);
    expect_ok(cb_money_subtract(&a, &b, &a, &e), e);
    expect_money("-0.10", "EUR", a);
    expect_ok(cb_money_compare(&a, &b, &order, &e), e);
    cr_assert_lt(order, 0);

    expect_error(CB_INVALID_DATA, cb_money_add(&a, &c, &ret, &e), e);
    cr_assert_str_eq(e.message, "EUR and USD are different currencies");
    expect_error(CB_INVALID_DATA, cb_money_subtract(&a, &c, &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_compare(&a, &c, &order, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_add(&a, &(cb_money){ 0, "" }, &ret, &e), e);
}

Test(money, what_has_no_room_is_refused_and_nothing_is_changed)
{
    cb_money most = { INT64_MAX, "EUR" }, least = { INT64_MIN, "EUR" }, one = { 1, "EUR" };
    cb_money ret = { 42, "EUR" };
    cb_decimal two = { 2, 0 }, minus = { -1, 0 }, largest = { INT64_MAX, 0 };
    cb_error e;

    expect_error(CB_INVALID_DATA, cb_money_add(&most, &one, &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_subtract(&least, &one, &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_multiply(&most, &two, &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_multiply(&least, &minus, &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_convert(&most, &largest, "CLF", &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_convert(&one, &two, "XXX", &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_money_convert(&one, &(cb_decimal){ 1, 19 }, "USD", &ret, &e),
                 e);
    cr_assert_eq(ret.minor, 42);
}

Test(money, a_conversion_rounds_once_and_half_to_even)
{
    expect_money("108.37", "USD", converted("100.00", "EUR", "1.0837", "USD"));
    expect_money("0.00", "EUR", converted("0.01", "EUR", "0.5", "EUR"));
    expect_money("0.02", "EUR", converted("0.03", "EUR", "0.5", "EUR"));
    expect_money("0.02", "EUR", converted("0.05", "EUR", "0.5", "EUR"));
    expect_money("-0.02", "EUR", converted("-0.03", "EUR", "0.5", "EUR"));
    expect_money("-0.02", "EUR", converted("-0.05", "EUR", "0.5", "EUR"));
    expect_money("0.01", "EUR", converted("0.01", "EUR", "0.500000000000000001", "EUR"));
    expect_money("0.00", "EUR", converted("0.01", "EUR", "0.499999999999999999", "EUR"));
    expect_money("16233", "JPY", converted("100.00", "EUR", "162.3250000000000001", "JPY"));
    expect_money("16232", "JPY", converted("100.00", "EUR", "162.325", "JPY"));
    expect_money("0.308", "KWD", converted("1.00", "USD", "0.3077", "KWD"));
    expect_money("1.0000", "CLF", converted("37000", "CLP", "0.000027027027027027", "CLF"));
    expect_money("92233720368547758.07", "EUR",
                 converted("92233720368547758.07", "EUR", "1.000000000000000000", "EUR"));
}

Test(money, a_decimal_keeps_what_was_written)
{
    static const char *const same[] = { "0",
                                        "1.0837",
                                        "1.10",
                                        "-0.5",
                                        "0.000000000000000001",
                                        "0.00",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "-9.223372036854775808" };
    char text[CB_DECIMAL_TEXT];
    cb_decimal ret;
    cb_error e;

    for (size_t i = 0; i < CB_COUNT(same); i++) {
        ret = decimal(same[i]);
        cr_assert(cb_decimal_print(&ret, text));
        cr_assert_str_eq(text, same[i]);
    }
    expect_error(CB_INVALID_DATA, cb_decimal_parse("0.0000000000000000001", &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_decimal_parse("9223372036854775808", &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_decimal_parse(NULL, &ret, &e), e);
    cr_assert_not(cb_decimal_print(&(cb_decimal){ 1, -1 }, text));
}

Test(money, no_product_is_off_by_more_than_a_half_and_a_half_is_even) /* DESIGN 4 */
{
    unsigned seed = test_seed();
    cb_error e;

    for (int i = 0; i < 200000; i++) {
        int64_t minor = (int64_t)test_random(&seed, 2000001) - 1000000;
        int64_t digits = test_random(&seed, 200001);
        cb_money source = { minor, "EUR" }, ret;
        cb_decimal rate = { digits, 4 };

        expect_ok(cb_money_multiply(&source, &rate, &ret, &e), e);

        int64_t error = minor * digits - ret.minor * 10000; /* of the rounding, in 1/10000 */
        cr_assert(error >= -5000 && error <= 5000, "%ld × %ld", (long)minor, (long)digits);
        if (error == 5000 || error == -5000)
            cr_assert_eq(ret.minor % 2, 0, "%ld × %ld", (long)minor, (long)digits);
    }
}
