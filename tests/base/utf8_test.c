/* UTF-8: exactly the well-formed sequences of the Unicode standard. */
#include "utf8.h"

#include <criterion/criterion.h>
#include <string.h>

static bool is_scalar(uint32_t c)
{
    return c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
}

Test(utf8, every_code_point_is_the_same_when_encoded_and_decoded)
{
    for (uint32_t c = 1; c <= 0x10FFFF; c++) {
        char text[5] = "";
        uint32_t back = 0;

        if (!is_scalar(c))
            continue;
        size_t n = utf8_encode(c, text);
        cr_assert_eq(utf8_decode(text, &back), n, "U+%04X", c);
        cr_assert_eq(back, c, "U+%04X became U+%04X", c, back);
    }
}

/* With the test before: the well-formed ones, and no others. */
Test(utf8, as_many_sequences_are_valid_as_there_are_code_points)
{
    size_t valid[5] = { 0 };

    for (unsigned first = 1; first < 0x100; first++) {
        char one[] = { (char)first, 0 };
        valid[1] += utf8_length(one) == 1;
        for (unsigned second = 1; second < 0x100; second++) {
            char two[] = { (char)first, (char)second, 0 };
            valid[2] += utf8_length(two) == 2;
            /* Each continuation has six bits, and the third and fourth have no other rule. */
            for (unsigned third = 1; third < 0x100; third++) {
                char three[] = { (char)first, (char)second, (char)third, 0 };
                char four[] = { (char)first, (char)second, (char)third, (char)0xBF, 0 };
                valid[3] += utf8_length(three) == 3;
                valid[4] += utf8_length(four) == 4;
            }
        }
    }
    cr_expect_eq(valid[1], 0x7F);
    cr_expect_eq(valid[2], 0x800 - 0x80);
    cr_expect_eq(valid[3], 0x10000 - 0x800 - 0x800 /* surrogates */);
    cr_expect_eq(valid[4], (0x110000 - 0x10000) / 64);
}

Test(utf8, malformed_texts_are_invalid)
{
    static const char *const malformed[] = {
        "\x80",             /* a continuation alone */
        "a\xBF",            /* likewise, at the end */
        "\xC3",             /* cut off */
        "\xE2\x82",         /* likewise */
        "\xF0\x9F\x98",     /* likewise */
        "\xC0\x80",         /* overlong NUL */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* likewise */
        "\xF0\x8F\xBF\xBF", /* likewise */
        "\xED\xA0\x80",     /* a surrogate */
        "\xED\xBF\xBF",     /* likewise */
        "\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "\xF5\x80\x80\x80", /* likewise */
        "\xFE",
        "\xFF",
        "caf\xE9", /* Latin-1 */
    };

    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        cr_expect(!utf8_is_valid(malformed[i]), "%zu", i);
    cr_expect(utf8_is_valid(""));
    cr_expect(utf8_is_valid("a \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF"));
}

Test(utf8, the_end_of_a_text_is_not_a_character)
{
    uint32_t character = 7;

    cr_expect_eq(utf8_length(""), 0);
    cr_expect_eq(utf8_decode("", &character), 0);
    cr_expect_eq(character, 7);
}

Test(utf8, characters_are_counted_not_bytes)
{
    cr_expect_eq(utf8_count(""), 0);
    cr_expect_eq(utf8_count("Z\xC3\xBCrich \xE2\x82\xAC"), 8);
}

Test(utf8, trim_removes_only_an_incomplete_character)
{
    char complete[] = "10 \xE2\x82\xAC", two[] = "10 \xE2\x82", one[] = "10 \xE2", plain[] = "10 ",
         empty[] = "";

    utf8_trim(complete);
    utf8_trim(two);
    utf8_trim(one);
    utf8_trim(plain);
    utf8_trim(empty);

    cr_expect_str_eq(complete, "10 \xE2\x82\xAC");
    cr_expect_str_eq(two, "10 ");
    cr_expect_str_eq(one, "10 ");
    cr_expect_str_eq(plain, "10 ");
    cr_expect_str_eq(empty, "");
}

Test(utf8, repair_overwrites_each_malformed_byte)
{
    char text[] = "caf\xE9 \xED\xA0\x80 \xE2\x82\xAC";

    utf8_repair(text);

    cr_expect_str_eq(text, "caf? ??? \xE2\x82\xAC");
}

Test(utf8, copy_keeps_whole_characters_that_fit)
{
    char to[6];

    utf8_copy(to, sizeof to,
              "12\xE2\x82\xAC"
              "4");
    cr_expect_str_eq(to, "12\xE2\x82\xAC");
    utf8_copy(to, sizeof to, "123\xE2\x82\xAC");
    cr_expect_str_eq(to, "123");
    utf8_copy(to, sizeof to, "1\xE9");
    cr_expect_str_eq(to, "1\xEF\xBF\xBD");
}
