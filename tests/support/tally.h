/* tests/tools/tally.c as a child of the test: somebody to call, who counts. */
#ifndef TEST_SUPPORT_TALLY_H
#define TEST_SUPPORT_TALLY_H

#include <stddef.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;
    int port;
} test_tally;

/* Both fail the test when they cannot. */
test_tally tally_start(void);
void tally_stop(const test_tally *t);

/* One number of its report, such as "open" or "max". Fails the test when there is none. */
long tally_number(const test_tally *t, const char *name);
/* Waits until that number is `expected`; fails when its patience (wait.h) is over. */
void tally_await(const test_tally *t, const char *name, long expected);

#endif
