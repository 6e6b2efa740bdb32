/* Refusing a setting: what is wrong, and what to do. */
#ifndef APP_MISUSE_H
#define APP_MISUSE_H

#include <commandbus/error.h>

/* CB_MISUSE. Returns false. */
bool misuse(cb_error *e, const char *hint, const char *fmt, ...) CB_PRINTF(3, 4);

#endif
