/* Refusing a setting. */
#include "misuse.h"

#include <stdarg.h>
#include <stdio.h>

bool misuse(cb_error *e, const char *hint, const char *fmt, ...)
{
    char message[sizeof e->message];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    cb_fail(e, CB_MISUSE, "%s", message);
    if (e)
        snprintf(e->hint, sizeof e->hint, "%s", hint);
    return false;
}
