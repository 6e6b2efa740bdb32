/* Characters in strings of JSON. */
#include "json_escape.h"

#include <stdio.h>

size_t json_escape(unsigned char byte, char out[JSON_ESCAPE_SIZE])
{
    static const char letters[] = "btn.fr"; /* of 0x08 to 0x0d; JSON has none for 0x0b */
    char letter = '\0';

    if (byte == '"' || byte == '\\')
        letter = (char)byte;
    else if (byte >= 0x08 && byte <= 0x0d && byte != 0x0b)
        letter = letters[byte - 0x08];
    else if (byte >= 0x20 && byte != 0x7f)
        return 0;
    return (size_t)(letter ? snprintf(out, JSON_ESCAPE_SIZE, "\\%c", letter)
                           : snprintf(out, JSON_ESCAPE_SIZE, "\\u%04x", byte));
}
