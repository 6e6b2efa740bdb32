/* The text of a file, before libconfig sees it. */
#ifndef APP_CONFIG_TEXT_H
#define APP_CONFIG_TEXT_H

#include <commandbus/error.h>

/* The whole file; *ret is NULL and the result true when there is none. The caller frees it. CB_MISUSE
 * for what is no file, cannot be read, is longer than limit bytes or holds a NUL. */
bool text_read(const char *path, size_t limit, char **ret, cb_error *e) CB_NODISCARD;

/* Refuses what libconfig does not handle: numbers that do not fit its integers (it keeps the lower
 * bits), @include (it ends the program when the included file cannot be read), and a text without its
 * closing quote (it names the last line of the file). */
bool text_check(const char *path, const char *text, cb_error *e) CB_NODISCARD;

#endif
