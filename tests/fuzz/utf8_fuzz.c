/* UTF-8: what is valid is what iconv takes, character by character, and what is repaired is
 * valid. */
#include "fuzz.h"

#include <iconv.h>

#include "utf8.h"

/* The first character as iconv decodes it, which shares nothing with ours; 0 for none. */
static size_t reference_decode(const char *text, uint32_t *character)
{
    static iconv_t converter;
    char *in = (char *)(uintptr_t)text, *out = (char *)character;
    size_t in_left = strlen(text), out_left = sizeof *character;

    if (!converter)
        converter = iconv_open("UTF-32LE", "UTF-8");
    FUZZ_CHECK(converter != (iconv_t)-1, "no iconv");
    iconv(converter, NULL, NULL, NULL, NULL);
    (void)iconv(converter, &in, &in_left, &out, &out_left); /* stops behind the first */
    return (size_t)(in - text);
}

static void check_decoding(const char *text, bool valid)
{
    size_t characters = 0;
    bool all = true;

    for (const char *at = text; *at;) {
        uint32_t character = 0, expected = 0;
        char bytes[4];
        size_t n = utf8_decode(at, &character), reference = reference_decode(at, &expected);

        FUZZ_CHECK(n == utf8_length(at), "decoded %zu bytes of %zu", n, utf8_length(at));
        FUZZ_CHECK(n == reference, "%zu bytes, not %zu as iconv says", n, reference);
        FUZZ_CHECK(character == expected, "U+%04X, not U+%04X", character, expected);
        FUZZ_CHECK(n == 0 || (utf8_encode(character, bytes) == n && memcmp(bytes, at, n) == 0),
                   "U+%04X is encoded as something else", character);
        all = all && n > 0;
        characters++;
        at += n ? n : 1;
    }
    FUZZ_CHECK(valid == all, "valid as a whole, but not by its characters");
    FUZZ_CHECK(!valid || utf8_count(text) == characters, "%zu characters", utf8_count(text));
}

static void check_repairing(const char *text, bool valid)
{
    char *repaired = strdup(text), *cut = strdup(text);
    char copy[16];

    FUZZ_CHECK(repaired && cut, "no memory");
    utf8_repair(repaired);
    FUZZ_CHECK(utf8_is_valid(repaired), "repaired is not UTF-8");
    FUZZ_CHECK(!valid || strcmp(repaired, text) == 0, "what was fine has changed");

    /* Cut anywhere and trimmed, a valid text is a valid beginning of itself, at most one character
     * shorter. */
    for (size_t n = strlen(text), cuts = 0; valid && n > 0 && cuts < 16; cuts++) {
        cut[--n] = '\0';
        utf8_trim(cut);
        FUZZ_CHECK(utf8_is_valid(cut) && n - strlen(cut) < 4, "cut at %zu", n);
        n = strlen(cut);
    }
    utf8_copy(copy, sizeof copy, text);
    FUZZ_CHECK(strlen(copy) < sizeof copy && utf8_is_valid(copy), "copy is not UTF-8");
    FUZZ_CHECK(!valid || strncmp(copy, text, strlen(copy)) == 0, "copy is another text");
    free(repaired);
    free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_TEXT(text, data, size);
    bool valid = utf8_is_valid(text);

    check_decoding(text, valid);
    check_repairing(text, valid);
    return 0;
}
