/* UTF-8 as the fonts that every PDF reader brings can show it. */
#include "latin.h"

#include <stdint.h>

#include "utf8.h"

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

    while (*utf8 && n + 1 < size) {
        uint32_t character = 0; /* malformed: becomes ? */
        size_t length = utf8_decode(utf8, &character);
        out[n++] = letter_of(character);
        utf8 += length ? length : 1;
    }
    out[n] = '\0';
    return out;
}
