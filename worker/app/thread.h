/* Threads with small stacks, and waiting by a clock that nobody sets. */
#ifndef APP_THREAD_H
#define APP_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: there are no more threads, or no memory. */
bool thread_start(pthread_t *ret, size_t stack_bytes, void *(*run)(void *arg), void *arg);

/* Milliseconds of that clock. */
int64_t monotonic_ms(void);

/* A condition for timed waits by it. */
void condition_init(pthread_cond_t *cond);
/* Waits until it is signalled or that time has come, which false tells; INT64_MAX never comes.
 * As with any condition, it may wake for nothing. */
bool condition_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ms);

#endif
