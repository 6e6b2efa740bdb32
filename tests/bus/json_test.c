/* What counts as JSON here is what PostgreSQL's jsonb takes, no more and no less. */
#include "json.h"

#include <criterion/criterion.h>
#include <libpq-fe.h>
#include <locale.h>
#include <string.h>

#include "database.h"

/* Each with whether it is fine. */
static const struct {
    const char *text;
    bool fine;
} samples[] = {
    { "{}", true },
    { " \t\r\n{ \"a\" : [ 1 , -0.5e+10, true, false, null, \"x\" ] } ", true },
    { "{\"a\":1,\"a\":2}", true },
    { "[]", true },
    { "\"text\"", true },
    { "-0", true },
    { "1E5", true },
    { "{\"€\":\"\xF0\x9F\x92\xB6\"}", true },
    { "\"\\u20ac \\ud83d\\udcb6 \\n\\t\\/\\\\\\\"\"", true },
    { "", false },
    { "   ", false },
    { "{", false },
    { "{\"a\"}", false },
    { "{\"a\":}", false },
    { "{\"a\":1,}", false },
    { "{'a':1}", false },
    { "{a:1}", false },
    { "[1,]", false },
    { "[1 2]", false },
    { "[1", false },
    { "{\"a\":1]", false },
    { "{}{}", false },
    { "{} x", false },
    { "01", false },
    { "-", false },
    { "1.", false },
    { ".5", false },
    { "1e", false },
    { "+1", false },
    { "NaN", false },
    { "Infinity", false },
    { "nul", false },
    { "truex", false },
    { "/* no */ {}", false },
    { "\"open", false },
    { "\"tab\there\"", false },
    { "\"\\x\"", false },
    { "\"\\u12\"", false },
    { "\"\\u0000\"", false },
    { "\"\\ud83d\"", false },
    { "\"\\ud83d\\u0041\"", false },
    { "\"\\udcb6\"", false },
    { "\"\\", false },
    { "\"\\u\"", false },
    { "\"\xFF\"", false },
    { "\"\xC0\xAF\"", false },
    { "\"\xED\xA0\x80\"", false },
    { "\"\xF4\x90\x80\x80\"", false },
    { "\"\xE2\x82\"", false },
    { "\"\xE2\x82", false },
};

Test(json, is_judged_as_the_server_judges_it)
{
    PGconn *conn = PQconnectdb(test_server_url());

    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const char *values[] = { samples[i].text };
        cb_error e = { 0 };
        bool fine = json_check(samples[i].text, JSON_ANY, "data", &e);
        PGresult *result = PQexecParams(conn, "SELECT $1::jsonb", 1, NULL, values, NULL, NULL, 0);
        bool server = PQresultStatus(result) == PGRES_TUPLES_OK;
        PQclear(result);

        cr_expect_eq(fine, samples[i].fine, "%s: %s", samples[i].text, e.message);
        cr_expect_eq(server, samples[i].fine, "%s: the server disagrees", samples[i].text);
    }
    PQfinish(conn);
}

Test(json, the_error_says_what_and_where_but_not_the_payload)
{
    cb_error e = { 0 };

    cr_assert_not(json_check("{\"secret\" 12345}", JSON_OBJECT, "data", &e));

    cr_assert_eq(e.code, CB_INVALID_DATA);
    cr_assert_str_eq(e.message, "data is not valid JSON: expected ':' at byte 11");
    cr_assert_null(strstr(e.message, "secret"));
    cr_assert_str_not_empty(e.hint);
}

Test(json, an_object_is_an_object)
{
    cb_error e = { 0 };

    cr_assert(json_check(" {} ", JSON_OBJECT, "data", &e));
    cr_assert_not(json_check("[{}]", JSON_OBJECT, "headers", &e));
    cr_assert_str_eq(e.message, "headers must be a JSON object");
}

Test(json, nesting_is_bounded)
{
    char text[2 * (JSON_MAX_DEPTH + 1) + 1] = "";

    memset(text, '[', JSON_MAX_DEPTH);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    cr_assert(json_check(text, JSON_ANY, "data", NULL));

    memset(text, '[', JSON_MAX_DEPTH + 1);
    memset(text + JSON_MAX_DEPTH + 1, ']', JSON_MAX_DEPTH + 1);
    cr_assert_not(json_check(text, JSON_ANY, "data", NULL));
}

Test(json, siblings_are_not_depth)
{
    char text[6 * 100 + 16] = "[";

    for (int i = 0; i < 100; i++)
        strcat(text, "[[]],");
    strcat(text, "0]");
    cr_assert(json_check(text, JSON_ANY, "data", NULL));
}

/* The most a double holds is 1.797693134862315708…e308; what rounds to it is finite too. */
static const struct {
    const char *text;
    bool finite, held;
} numbers[] = {
    { "0", true, true },
    { "-0", true, true },
    { "999999999999999999", true, true },
    { "9223372036854775808", true, true },
    { "18446744073709551615", true, true },
    { "18446744073709551616", true, false },
    { "-9223372036854775808", true, true },
    { "-9223372036854775809", true, false },
    { "123456789012345678901234567890", true, false },
    { "123456789012345678901234567890.0", true, true },
    { "1e308", true, true },
    { "1.7976931348623157e308", true, true },
    { "1.8e308", false, false },
    { "-1.8E+308", false, false },
    { "1e999999", false, false },
    { "0e999999", true, true },
    { "1e-999999", true, true },
    { "{\"a\": [1, 2, 1e400]}", false, false },
};

Test(json, numbers_are_judged_by_where_they_go)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *text = numbers[i].text;
        cr_expect(json_check_numbers(text, JSON_ANY, JSON_NUMBERS_ANY, "data", NULL), "%s", text);
        cr_expect_eq(json_check_numbers(text, JSON_ANY, JSON_NUMBERS_FINITE, "data", NULL),
                     numbers[i].finite, "%s", text);
        cr_expect_eq(json_check_numbers(text, JSON_ANY, JSON_NUMBERS_HELD, "data", NULL),
                     numbers[i].held, "%s", text);
    }
}

Test(json, numbers_of_many_digits_are_judged_by_where_they_go)
{
    char text[400];

    memset(text, '9', 308);
    text[308] = '\0';
    cr_expect(json_check_numbers(text, JSON_ANY, JSON_NUMBERS_FINITE, "data", NULL));
    strcpy(text + 308, "99");
    cr_expect_not(json_check_numbers(text, JSON_ANY, JSON_NUMBERS_FINITE, "data", NULL));
    memcpy(text, "0.", 2);
    cr_expect(json_check_numbers(text, JSON_ANY, JSON_NUMBERS_FINITE, "data", NULL));
}

Test(json, numbers_are_judged_alike_in_every_locale)
{
    const char *const with_comma[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8" };
    bool found = false;

    for (size_t i = 0; i < 3 && !found; i++)
        found = setlocale(LC_NUMERIC, with_comma[i]) != NULL;
    if (!found)
        cr_skip_test("no locale with a decimal comma is installed");
    cr_expect_not(json_check_numbers("1.8e308", JSON_ANY, JSON_NUMBERS_FINITE, "data", NULL));
    cr_expect(json_check_numbers("1.5e308", JSON_ANY, JSON_NUMBERS_FINITE, "data", NULL));
}
