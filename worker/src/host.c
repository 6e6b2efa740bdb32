/* What a running handler can ask: the host behind its context. */
#include "clock.h"
#include "engine.h"

enum {
    MOST_TIMEOUTS = 10
};

static int64_t remaining_ms(void *arg)
{
    const job *j = arg;
    int64_t deadline = atomic_load(&j->deadline), lease_end = atomic_load(&j->lease_end);
    int64_t left = (deadline < lease_end ? deadline : lease_end) - now_ns();

    return left > 0 ? left / 1000000 : 0;
}

static bool is_lost(void *arg)
{
    return remaining_ms(arg) == 0;
}

/* Never more than one timeout from now, and only under a lease: a silent holder's capacity comes back
 * after its lease and one timeout, and that must stay true. */
static bool extend(void *arg, int64_t ms)
{
    job *j = arg;
    served *d = j->domain;
    int64_t timeout = seconds_to_ns(j->command->timeout_seconds), now = now_ns();
    bool granted = false;

    if (ms <= 0)
        return false;
    int64_t wanted = ms < timeout / 1000000 ? now + ms * 1000000 : now + timeout;
    pthread_mutex_lock(&d->mutex);
    if (wanted > j->started_at + MOST_TIMEOUTS * timeout)
        wanted = j->started_at + MOST_TIMEOUTS * timeout;
    if (!j->timed_out && job_lease_left(j) > 0 && wanted > atomic_load(&j->deadline)) {
        atomic_store(&j->deadline, wanted);
        granted = true;
    }
    pthread_mutex_unlock(&d->mutex);
    return granted;
}

static bool is_stopping(void *arg)
{
    const job *j = arg;

    return atomic_load(&j->domain->worker->stopping);
}

const cb_host job_host = {
    .remaining_ms = remaining_ms,
    .extend = extend,
    .is_lost = is_lost,
    .is_stopping = is_stopping,
};
