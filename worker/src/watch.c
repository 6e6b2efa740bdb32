/* The watching thread: timeouts of handlers and steps. Asks nothing of the database, so that it
 * works when that does not. Timeouts are whole seconds, so looking at the next one or once a second
 * is never late. A thread cannot be killed: what does not return within its grace either ends the
 * instance. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "engine.h"

void watch_begin(job *j, const char *step, int64_t timeout_ns)
{
    j->runs = true;
    j->began = now_ns();
    atomic_store(&j->deadline, j->began + timeout_ns);
    if (step)
        snprintf(j->step, sizeof j->step, "%s", step);
    j->lane->running++;
}

void watch_end(job *j)
{
    lane *l = j->lane;

    l->running--;
    if (j->overdue)
        l->overdue--;
    if (j->given_up)
        atomic_fetch_sub(&l->given_up, 1);
    j->runs = j->overdue = j->given_up = false;
}

/* With the mutex held. True when there is something to tell; else *next is moved to when it is due
 * again. */
static bool look_at(job *j, int64_t now, int64_t *next)
{
    lane *l = j->lane;
    int64_t grace = seconds_to_ns(l->worker->kill_grace_seconds);
    int64_t due = atomic_load(&j->deadline) + (j->overdue ? grace : 0);

    if (!j->runs || j->given_up)
        return false;
    if (due > now) {
        *next = due < *next ? due : *next;
        return false;
    }
    if (!j->overdue) {
        j->overdue = true;
        l->overdue++;
        *next = now + grace < *next ? now + grace : *next;
        if (!l->ops->overdue)
            return true;
        l->ops->overdue(j);
        return false;
    }
    if (!l->ops->is_hopeless || l->ops->is_hopeless(j)) {
        j->given_up = true;
        atomic_fetch_add(&l->given_up, 1);
    }
    return !atomic_exchange(&l->worker->broken, true);
}

/* Looks at everything that runs; returns when the next is due. What there is to tell is told
 * without the mutex: the listener may well stop the worker. */
static int64_t watch_lane(lane *l, int64_t now)
{
    int64_t next = INT64_MAX;
    job *found = NULL;
    char step[sizeof found->step] = "";
    bool stuck = false;

    pthread_mutex_lock(&l->mutex);
    for (job *j = l->running > 0 ? l->jobs : NULL; j && !found; j = j->next) {
        bool was_overdue = j->overdue;
        if (!look_at(j, now, &next))
            continue;
        found = j;
        stuck = was_overdue;
        memcpy(step, j->step, sizeof step);
        atomic_fetch_add(&j->users, 1);
    }
    pthread_mutex_unlock(&l->mutex);
    if (!found)
        return next;
    l->ops->tell_overdue(found, step, stuck);
    job_drop(found);
    return now; /* there may be more to tell */
}

void *watch_thread(void *worker)
{
    cb_worker *w = worker;
    bool goes_on = true;
    int64_t bring_at = 0;

    while (goes_on) {
        int64_t now = now_ns(), next = now + seconds_to_ns(1);
        if (now >= bring_at) {
            /* They keep their places until the database takes them. */
            for (lane_kind kind = COMMANDS; kind < KINDS; kind++)
                settler_bring_again(&w->settling[kind]);
            bring_at = next;
        }
        for (size_t i = 0; i < w->n_lanes; i++) {
            int64_t due = watch_lane(w->lanes[i], now);
            next = due < next ? due : next;
        }
        if (atomic_load(&w->stopping)) /* somebody may wait for jobs that were given up just now */
            worker_changed(w);
        goes_on = worker_pause(w, ns_to_ms(next - now) / 1e3);
    }
    return NULL;
}
