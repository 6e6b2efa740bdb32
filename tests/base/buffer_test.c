/* Text that grows, and text in an array. */
#include "buffer.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>

#include "json_escape.h"
#include "text.h"

Test(buffer, seconds_have_a_point_in_every_locale)
{
    OWNED_BUFFER(b);

    setlocale(LC_ALL, "de_DE.UTF-8"); /* Proves something only where it is installed. */
    buffer_add_seconds(&b, 1.5);
    buffer_add_text(&b, " ");
    buffer_add_seconds(&b, -0.0000015);
    buffer_add_text(&b, " ");
    buffer_add_seconds(&b, 1e300);

    cr_assert_str_eq(b.bytes, "1.500000 -0.000002 1000000000000.000000");
}

Test(buffer, more_than_a_value_can_hold_is_remembered_as_failure)
{
    OWNED_BUFFER(b);

    buffer_add(&b, "x", 1);
    buffer_add(&b, "x", (size_t)2 << 30);
    buffer_add_text(&b, "more");

    cr_assert(b.failed);
    cr_assert_str_eq(b.bytes, "x");
}

Test(buffer, a_json_string_has_its_escapes)
{
    OWNED_BUFFER(b);

    buffer_add_json_string(&b, "a\"b\\c\b\t\n\v\f\r\x01\x7f/€");
    buffer_add_json_string(&b, "");

    cr_assert_str_eq(b.bytes, "\"a\\\"b\\\\c\\b\\t\\n\\u000b\\f\\r\\u0001\\u007f/€\"\"\"");
}

Test(json_escape, leaves_every_other_byte)
{
    char out[JSON_ESCAPE_SIZE];

    for (unsigned byte = 0; byte < 0x100; byte++) {
        bool stands_for_itself = byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f;
        size_t n = json_escape((unsigned char)byte, out);
        cr_expect_eq(n == 0, stands_for_itself, "byte %02x", byte);
        cr_expect(n == 0 || strlen(out) == n, "byte %02x", byte);
    }
}

Test(text, is_appended_as_far_as_it_fits)
{
    char text[8] = "";

    text_append(text, sizeof text, "%s", "ab");
    text_append(text, sizeof text, "%d", 12);
    cr_expect_str_eq(text, "ab12");
    text_append(text, sizeof text, "%s", "3456");
    cr_expect_str_eq(text, "ab12345");
    text_append(text, sizeof text, "more");
    cr_expect_str_eq(text, "ab12345");
}

Test(text, is_cut_between_characters)
{
    char text[8] = "abcde";

    text_append(text, sizeof text, "%s", "\xE2\x82\xAC");
    cr_expect_str_eq(text, "abcde");
}
