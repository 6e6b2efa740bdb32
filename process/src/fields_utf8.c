/* Recognising UTF-8, by the table of the Unicode standard (well-formed byte sequences). */
#include "fields_types.h"

/* How many bytes follow the first one; -1 if it cannot be a first one. */
static int followers(unsigned char first)
{
    if (first < 0x80)
        return 0;
    if (first >= 0xC2 && first <= 0xDF)
        return 1;
    if (first >= 0xE0 && first <= 0xEF)
        return 2;
    return first >= 0xF0 && first <= 0xF4 ? 3 : -1;
}

/* The second byte decides whether a sequence is overlong, a surrogate or too large. */
static bool second_is_fine(unsigned char first, unsigned char second)
{
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;

    return second >= low && second <= high;
}

/* The bytes of the character that begins here; 0 if none does. */
static size_t character(const unsigned char *s)
{
    int n = followers(*s);

    if (n < 0 || (n > 0 && !second_is_fine(s[0], s[1])))
        return 0;
    for (int i = 2; i <= n; i++) { /* A NUL does not continue, so this never passes the end. */
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    }
    return (size_t)n + 1;
}

bool field_text_is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    while (*s) {
        size_t n = character(s);
        if (n == 0)
            return false;
        s += n;
    }
    return true;
}

void field_text_mend(char *text)
{
    unsigned char *s = (unsigned char *)text;

    while (*s) {
        size_t n = character(s);
        if (n == 0)
            *s = '?';
        s += n ? n : 1;
    }
}
