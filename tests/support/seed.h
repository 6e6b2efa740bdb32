/* Random tests that can be replayed. */
#ifndef TEST_SUPPORT_SEED_H
#define TEST_SUPPORT_SEED_H

/* A new seed, or the one in COMMANDBUS_TEST_SEED; printed either way. */
unsigned test_seed(void);

/* 0 to n - 1. */
unsigned test_random(unsigned *seed, unsigned n);

#endif
