/* Passing time as a handler should: never past its own, and with an eye on the worker. */
#include "rest.h"

#include <time.h>

/* Short enough to notice soon, long enough for a thousand handlers to rest at once. */
static const int64_t slice_ms = 100;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

rest_end rest(const cb_context *ctx, int64_t ms, bool interruptible)
{
    const int64_t end = now_ms() + ms;

    for (;;) {
        if (cb_context_lost(ctx))
            return REST_LOST;
        if (interruptible && cb_context_stopping(ctx))
            return REST_STOPPING;
        int64_t left = end - now_ms();
        if (left <= 0)
            return REST_DONE;
        int64_t remaining = cb_context_remaining_ms(ctx);
        if (remaining <= 0)
            return REST_OVER;
        int64_t nap = least(slice_ms, least(left, remaining));
        nanosleep(&(struct timespec){ nap / 1000, nap % 1000 * 1000000 }, NULL);
    }
}

cb_outcome rest_outcome(cb_context *ctx, rest_end end)
{
    if (end == REST_STOPPING)
        return cb_interrupted(ctx);
    if (end == REST_LOST) /* nobody will read it, but a handler must say something */
        return cb_transient(ctx, "LEASE_LOST", "somebody else may run this command now");
    return cb_transient(ctx, "OUT_OF_TIME", "the time of this run is up");
}
