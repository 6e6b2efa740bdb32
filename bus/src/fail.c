/* Hints, and running out of memory. */
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

bool fail_memory(cb_error *e)
{
    return cb_fail(e, CB_MEMORY, "out of memory");
}
