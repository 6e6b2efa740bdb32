/* Recognising UTF-8, by the table of the Unicode standard (well-formed byte sequences). */
#include "utf8.h"

#include <stdbool.h>
#include <string.h>

static bool continues(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* The byte after the first one decides whether a sequence is overlong, a surrogate or too large. */
static bool second_is_fine(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return continues(second);
    }
}

/* How many bytes the first one announces, 0 if it cannot be a first one. */
static size_t announced(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

size_t utf8_length(const unsigned char *s)
{
    size_t n = *s ? announced(*s) : 0;

    if (n > 1 && !second_is_fine(s[0], s[1]))
        return 0;
    for (size_t i = 2; i < n; i++) { /* A NUL does not continue, so this never passes the end. */
        if (!continues(s[i]))
            return 0;
    }
    return n;
}

void utf8_mend(char *s)
{
    size_t length = strlen(s), start = length;

    while (start > 0 && length - start < 3 && continues((unsigned char)s[start - 1]))
        start--;
    if (start > 0 && announced((unsigned char)s[start - 1]) > length - start + 1)
        s[start - 1] = '\0';
}

void utf8_copy(char *to, size_t size, const char *from)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t used = 0;

    while (*from) {
        size_t length = utf8_length((const unsigned char *)from);
        size_t needed = length ? length : sizeof replacement - 1;
        if (used + needed >= size)
            break;
        memcpy(to + used, length ? from : replacement, needed);
        used += needed;
        from += length ? length : 1;
    }
    to[used] = '\0';
}
