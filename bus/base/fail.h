/* Filling errors beside cb_fail: with what to do about them, and without memory. */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include <commandbus/error.h>

/* Adds what to do. Returns false, so that it can follow cb_fail in one expression. */
bool fail_hint(cb_error *e, const char *fmt, ...) CB_PRINTF(2, 3);

/* CB_MISUSE with its hint. Returns false. */
bool fail_misuse(cb_error *e, const char *hint, const char *fmt, ...) CB_PRINTF(3, 4);

/* CB_MEMORY, "out of memory". Returns false. */
bool fail_memory(cb_error *e);

#endif
