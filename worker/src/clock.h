/* Time: one clock for everything that counts, waits on conditions by it, and threads. */
#ifndef WORKER_CLOCK_H
#define WORKER_CLOCK_H

#include <pthread.h>
#include <stdint.h>

/* CLOCK_BOOTTIME: leases go on while a machine sleeps. */
int64_t now_ns(void);
int64_t seconds_to_ns(double seconds);
double ns_to_ms(int64_t ns);

/* A condition for timed waits that no change of the wall clock disturbs. */
void waiting_init(pthread_cond_t *cond);
/* Waits until signalled or so long; ns < 0: no end. */
void waiting_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t ns);

#endif
