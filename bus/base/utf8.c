/* Decoding, checking and repairing UTF-8. */
#include "utf8.h"

#include <string.h>

static bool is_continuation(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* How many bytes the first one announces; 0 if it cannot be a first one. */
static size_t announced_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/* The second byte decides whether a sequence is overlong, a surrogate or too large. */
static bool second_is_allowed(unsigned char first, unsigned char second)
{
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;

    return second >= low && second <= high;
}

size_t utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = *s ? announced_length(*s) : 0;

    if (n > 1 && !second_is_allowed(s[0], s[1]))
        return 0;
    for (size_t i = 2; i < n; i++) { /* A NUL does not continue, so this never passes the end. */
        if (!is_continuation(s[i]))
            return 0;
    }
    return n;
}

size_t utf8_decode(const char *text, uint32_t *character)
{
    size_t n = utf8_length(text);

    if (n == 0)
        return 0;
    uint32_t c = (unsigned char)text[0] & (n == 1 ? 0x7Fu : 0x7Fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)text[i] & 0x3Fu);
    *character = c;
    return n;
}

size_t utf8_encode(uint32_t character, char out[4])
{
    static const unsigned char marks[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    size_t n = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

    for (size_t i = n; i-- > 1; character >>= 6)
        out[i] = (char)(0x80 | (character & 0x3F));
    out[0] = (char)(marks[n] | character);
    return n;
}

bool utf8_is_valid(const char *text)
{
    while (*text) {
        size_t n = utf8_length(text);
        if (n == 0)
            return false;
        text += n;
    }
    return true;
}

size_t utf8_count(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += !is_continuation((unsigned char)*text);
    return count;
}

void utf8_trim(char *text)
{
    size_t length = strlen(text), start = length;

    while (start > 0 && length - start < 3 && is_continuation((unsigned char)text[start - 1]))
        start--;
    if (start > 0 && announced_length((unsigned char)text[start - 1]) > length - start + 1)
        text[start - 1] = '\0';
}

void utf8_repair(char *text)
{
    while (*text) {
        size_t n = utf8_length(text);
        if (n == 0)
            *text = '?';
        text += n ? n : 1;
    }
}

void utf8_copy(char *to, size_t size, const char *from)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t used = 0;

    while (*from) {
        size_t length = utf8_length(from);
        size_t needed = length ? length : sizeof replacement - 1;
        if (used + needed >= size)
            break;
        memcpy(to + used, length ? from : replacement, needed);
        used += needed;
        from += length ? length : 1;
    }
    to[used] = '\0';
}
