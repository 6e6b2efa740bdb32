/* JSON as text: what fuzz_json_text found. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"

static void expect_pretty(const char *json, const char *expected)
{
    char *text = NULL,
         *copy = strdup(json); /* as long as it is, so that AddressSanitizer sees reads beyond it */
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    json_write_pretty(out, copy, 0);
    fclose(out);
    cr_expect_str_eq(text, expected);
    free(text);
    free(copy);
}

Test(json_text, is_indented_and_ends_where_it_ends)
{
    expect_pretty("{\"a\":[],\"b\": { }}", "{\n  \"a\": [],\n  \"b\": {}\n}");
    expect_pretty("{", "{\n  ");
    expect_pretty("[ ", "[\n  ");
}

/* `--set account=007` sets a text: the database would refuse the number. */
Test(json_text, a_value_is_what_the_database_takes_for_one)
{
    static const char *const texts[] = { "007",         "NaN",         "-Infinity", "00",
                                         "{\"a\":NaN}", "\"\\ud800\"", "1 2",       "" };
    static const char *const values[] = { "7",     "-0.5e3", "123456789012345678901234567890",
                                          "\"x\"", "null",   " [1] " };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_expect(!json_is_value(texts[i]), "%s", texts[i]);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        cr_expect(json_is_value(values[i]), "%s", values[i]);
}
