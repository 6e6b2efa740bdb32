/* Doing things at the same moment. */
#ifndef TEST_SUPPORT_PARALLEL_H
#define TEST_SUPPORT_PARALLEL_H

#include <stddef.h>

/* Runs work(i, arg) for i from 0 to n - 1, each on a thread of its own, all released together;
 * returns when all are done. Asserting is for the caller, afterwards: threads may not. */
void parallel_run(size_t n, void (*work)(size_t i, void *arg), void *arg);

#endif
