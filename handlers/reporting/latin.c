/* UTF-8 as the fonts that every PDF reader brings can show it. */
#include "latin.h"

#include <stdbool.h>
#include <stdint.h>

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* One character; *text moves on by at least one byte, whatever stands there. */
static uint32_t next_character(const char **text)
{
    unsigned char first = (unsigned char)*(*text)++;
    uint32_t character = first < 0x80   ? first
                         : first < 0xE0 ? first & 0x1F
                         : first < 0xF0 ? first & 0x0F
                                        : first & 0x07;

    while (first >= 0x80 && is_continuation((unsigned char)**text))
        character = character << 6 | ((unsigned char)*(*text)++ & 0x3F);
    return character;
}

static char letter_of(uint32_t character)
{
    if (character == 0x20AC)
        return (char)0x80;
    return (character >= 0x20 && character < 0x7F) || (character >= 0xA0 && character <= 0xFF)
               ? (char)character
               : '?';
}

const char *latin_of(const char *utf8, char *out, size_t size)
{
    size_t n = 0;

    while (*utf8 && n + 1 < size)
        out[n++] = letter_of(next_character(&utf8));
    out[n] = '\0';
    return out;
}
