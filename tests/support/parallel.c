/* Threads behind a barrier. */
#include "parallel.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct {
    size_t i;
    void (*work)(size_t i, void *arg);
    void *arg;
    pthread_barrier_t *barrier;
    pthread_t thread;
} runner;

static void *runner_run(void *arg)
{
    runner *r = arg;

    pthread_barrier_wait(r->barrier);
    r->work(r->i, r->arg);
    return NULL;
}

void parallel_run(size_t n, void (*work)(size_t i, void *arg), void *arg)
{
    pthread_barrier_t barrier;
    runner *runners = calloc(n, sizeof *runners);

    cr_assert(runners && pthread_barrier_init(&barrier, NULL, (unsigned)n) == 0);
    for (size_t i = 0; i < n; i++) {
        runners[i] = (runner){ .i = i, .work = work, .arg = arg, .barrier = &barrier };
        cr_assert_eq(pthread_create(&runners[i].thread, NULL, runner_run, &runners[i]), 0);
    }
    for (size_t i = 0; i < n; i++)
        pthread_join(runners[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    free(runners);
}
