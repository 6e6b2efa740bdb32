/* UTF-8: the three decoders agree on every text, and what they mend is UTF-8. */
#include "fuzz.h"

#include "../../bus/cli/utf8.h"
#include "../../bus/src/utf8.h"
#include "fields_types.h"

static bool bus_takes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        size_t length = utf8_length(at);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

static void check_mended(const char *text, bool valid)
{
    char *mended = strdup(text), *cut = strdup(text);
    char copy[16];

    FUZZ_CHECK(mended && cut, "no memory");
    field_text_mend(mended);
    FUZZ_CHECK(bus_takes(mended), "mended is not UTF-8");
    FUZZ_CHECK(!valid || strcmp(mended, text) == 0, "what was fine has changed");

    /* Cut anywhere and mended, a valid text is a valid beginning of itself, at most one character shorter. */
    for (size_t n = strlen(text), cuts = 0; valid && n > 0 && cuts < 16; cuts++) {
        cut[--n] = '\0';
        utf8_mend(cut);
        FUZZ_CHECK(bus_takes(cut) && n - strlen(cut) < 4, "cut at %zu", n);
        n = strlen(cut);
    }
    utf8_copy(copy, sizeof copy, text);
    FUZZ_CHECK(strlen(copy) < sizeof copy && bus_takes(copy), "copy is not UTF-8");
    FUZZ_CHECK(!valid || strncmp(copy, text, strlen(copy)) == 0, "copy is another text");
    free(mended);
    free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_TEXT(text, data, size);
    size_t length = strlen(text);
    bool valid = bus_takes(text);

    FUZZ_CHECK(field_text_is_utf8(text) == valid, "process and bus do not agree");
    FUZZ_CHECK(utf8_is_valid(text, length) == valid, "cli and bus do not agree");
    FUZZ_CHECK(!valid || utf8_count(text) <= length, "more characters than bytes");
    check_mended(text, valid);
    return 0;
}
