/* Seeds from the environment or the clock. */
#include "seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

unsigned test_seed(void)
{
    const char *given = getenv("COMMANDBUS_TEST_SEED");
    unsigned seed =
        given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL) ^ (unsigned)getpid() << 8;

    fprintf(stderr, "to replay: COMMANDBUS_TEST_SEED=%u\n", seed);
    return seed;
}

unsigned test_random(unsigned *seed, unsigned n)
{
    return (unsigned)rand_r(seed) % n;
}
