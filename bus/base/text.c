/* Texts in arrays of a fixed size. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

void text_append(char *text, size_t size, const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, fmt);
    vsnprintf(text + used, size - used, fmt, args);
    va_end(args);
    utf8_trim(text + used);
}
