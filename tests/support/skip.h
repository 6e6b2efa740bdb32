/* A test that cannot be run here. */
#ifndef TEST_SUPPORT_SKIP_H
#define TEST_SUPPORT_SKIP_H

#include <criterion/criterion.h>
#include <stdio.h>

/* Says why, in the words that support/count.awk counts, and ends the test. */
#define test_skip(why)                \
    do {                              \
        printf("SKIPPED: %s\n", why); \
        fflush(stdout);               \
        cr_skip_test("%s", why);      \
    } while (0)

#endif
