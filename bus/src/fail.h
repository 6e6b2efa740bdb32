/* How the library itself fills errors, beside cb_fail. */
#ifndef CB_FAIL_H
#define CB_FAIL_H

#include <commandbus/error.h>

/* Adds what to do. Returns false, so that it can follow cb_fail in one expression. */
bool fail_hint(cb_error *e, const char *fmt, ...) CB_PRINTF(2, 3);

/* CB_MEMORY. Returns false. */
bool fail_memory(cb_error *e);

#endif
