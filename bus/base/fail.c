/* Errors with their hints. */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "utf8.h"

bool fail_hint(cb_error *e, const char *fmt, ...)
{
    if (!e)
        return false;

    va_list args;
    va_start(args, fmt);
    vsnprintf(e->hint, sizeof e->hint, fmt, args);
    va_end(args);
    utf8_trim(e->hint);
    return false;
}

bool fail_misuse(cb_error *e, const char *hint, const char *fmt, ...)
{
    char message[sizeof e->message];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    cb_fail(e, CB_MISUSE, "%s", message);
    return fail_hint(e, "%s", hint);
}

bool fail_memory(cb_error *e)
{
    return cb_fail(e, CB_MEMORY, "out of memory");
}
