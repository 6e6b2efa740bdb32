/* Random scripts. */
#ifndef TEST_TOYS_SCRIPT_MAKE_H
#define TEST_TOYS_SCRIPT_MAKE_H

/* The first state of a script (script.h), as JSON; the caller frees it. Some are plain, some fail
 * all the time. Waits time out after `wait_ms`. */
char *script_make(unsigned *seed, const char *log, int wait_ms);

#endif
