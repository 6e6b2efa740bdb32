/* UTF-8: what may be printed and sent. */
#include "utf8.h"

static bool continues(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

size_t utf8_character(const char *text, size_t length)
{
    const unsigned char *c = (const unsigned char *)text;

    if (length >= 1 && c[0] < 0x80)
        return 1;
    if (length >= 2 && c[0] >= 0xC2 && c[0] <= 0xDF && continues(c[1]))
        return 2;
    if (length >= 3 && (c[0] & 0xF0) == 0xE0 && continues(c[1]) && continues(c[2])) {
        bool overlong = c[0] == 0xE0 && c[1] < 0xA0, surrogate = c[0] == 0xED && c[1] >= 0xA0;
        return overlong || surrogate ? 0 : 3;
    }
    if (length >= 4 && c[0] >= 0xF0 && c[0] <= 0xF4 && continues(c[1]) && continues(c[2]) &&
        continues(c[3])) {
        bool overlong = c[0] == 0xF0 && c[1] < 0x90, above = c[0] == 0xF4 && c[1] >= 0x90;
        return overlong || above ? 0 : 4;
    }
    return 0;
}

bool utf8_is_valid(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t bytes = utf8_character(text + at, length - at);
        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}

size_t utf8_count(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += !continues((unsigned char)*text);
    return count;
}
