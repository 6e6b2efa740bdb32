/* What counts as JSON here is what PostgreSQL's jsonb takes, no more and no less. BUS.16. */
#include "json_check.h"

#include <criterion/criterion.h>
#include <libpq-fe.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "database.h"
#include "skip.h"

/* Each with whether it is fine. */
static const struct {
    const char *text;
    bool fine;
} samples[] = {
    { "{}", true },
    { " \t\r\n{ \"a\" : [ 1 , -0.5e+10, true, false, null, \"x\" ] } ", true },
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

/* Each with the key that is there twice as its text has it, or NULL. */
static const struct {
    const char *text, *twice;
} keys[] = {
    { "{\"amount\":\"1\",\"amount\":\"1000\"}", "'amount' at byte 15" },
    { "{\"a\":1,\"A\":2,\"a \":3,\"\":4}", NULL },
    { "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":1}]}", NULL },
    { "[[{\"b\":[{\"x\":1,\"y\":{},\"x\":2}]}]]", "'x' at byte 23" },
    { "{\"a\":{\"b\":1},\"b\":2,\"a\":3}", "'a' at byte 20" },
    { "{\"\":1,\"\":2}", "'' at byte 7" },
    { "{\"amount\":1,\"\\u0061mount\":2}", "'\\u0061mount' at byte 13" },
    { "{\"\\u20AC\":1,\"\xE2\x82\xAC\":2}", "'\xE2\x82\xAC' at byte 13" },
    { "{\"\\ud83d\\uDCB6\":1,\"\xF0\x9F\x92\xB6\":2}", "'\xF0\x9F\x92\xB6' at byte 19" },
    { "{\"\\u00e9\":1,\"\xC3\xA9\":2}", "'\xC3\xA9' at byte 13" },
    { "{\"a\\/b\":1,\"a/b\":2}", "'a/b' at byte 11" },
    { "{\"\\n\\\"\":1,\"\\u000A\\u0022\":2}", "'\\u000A\\u0022' at byte 11" },
    { "{\"\\b\\f\\r\\t\\\\\":1,\"bfrt\\\\\":2,\"\\u0008\\u000c\\u000d\\u0009\\u005c\":3}",
      "at byte 28" },
    { "{\"n\":1,\"\\n\":2,\"\\\\n\":3}", NULL },
};

Test(json, a_key_is_there_once_however_it_is_spelled)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        cb_error e = { 0 };
        bool fine = json_check(keys[i].text, JSON_ANY, "data", &e);

        cr_expect_eq(fine, !keys[i].twice, "%s: %s", keys[i].text, e.message);
        if (keys[i].twice) {
            cr_expect_eq(e.code, CB_INVALID_DATA);
            cr_expect_not_null(strstr(e.message, "data has a duplicate key "), "%s", e.message);
            cr_expect_not_null(strstr(e.message, keys[i].twice), "%s", e.message);
        }
    }
}

Test(json, a_long_key_is_cut_in_the_message)
{
    char text[1000] = "{\"";
    cb_error e = { 0 };

    for (int i = 0; i < 60; i++)
        strcat(text, "\xE2\x82\xAC");
    strcat(text, "\":1,");
    size_t n = strlen(text);
    memcpy(text + n, text + 1, n - 2);
    strcpy(text + 2 * n - 2, "}");

    cr_assert_not(json_check(text, JSON_OBJECT, "data", &e));
    cr_expect_not_null(strstr(e.message, "\xE2\x82\xAC' at byte"), "%s", e.message);
    cr_expect_lt(strlen(e.message), 130, "%s", e.message);
}

/* "k1":1,"k2":1,… of `n` keys, of which the last is that with this number. */
static char *object_of(size_t n, size_t last)
{
    char *text = malloc(n * 16 + 16), *at = text;

    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "%s\"k%zu\":1", i ? "," : "{", i + 1 < n ? i : last);
    strcpy(at, "}");
    return text;
}

static double seconds_of(const char *text, bool fine)
{
    struct timespec began, ended;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    cr_expect_eq(json_check(text, JSON_OBJECT, "data", NULL), fine);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    return (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
}

/* 10^10 comparisons would take half a minute. */
Test(json, very_many_keys_are_compared_in_no_time)
{
    char *different = object_of(100000, 100000), *twice = object_of(100000, 7);

    cr_expect_lt(seconds_of(different, true), 5.0);
    cr_expect_lt(seconds_of(twice, false), 5.0);
    free(different);
    free(twice);
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
        test_skip("no locale with a decimal comma is installed");
    cr_expect_not(json_check_numbers("1.8e308", JSON_ANY, JSON_NUMBERS_FINITE, "data", NULL));
    cr_expect(json_check_numbers("1.5e308", JSON_ANY, JSON_NUMBERS_FINITE, "data", NULL));
}
