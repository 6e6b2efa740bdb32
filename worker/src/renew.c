/* The renewing thread: keeps the leases of everything in flight, also while the worker drains. A
 * lease is renewed once a third of it is over, so what ends sooner costs nothing. */
#include <stdlib.h>

#include "clock.h"
#include "engine.h"

void renew_soon(cb_worker *w)
{
    pthread_mutex_lock(&w->renewals.mutex);
    w->renewals.wanted = true;
    pthread_cond_broadcast(&w->renewals.changed);
    pthread_mutex_unlock(&w->renewals.mutex);
}

bool renew_wait(cb_worker *w)
{
    renewer *r = &w->renewals;

    pthread_mutex_lock(&r->mutex);
    /* The round that may be on its way began before: it takes the one after it. */
    uint64_t enough = r->rounds + 2;
    while (r->rounds < enough && !atomic_load(&w->ending)) {
        r->wanted = r->all = true;
        pthread_cond_broadcast(&r->changed);
        waiting_for(&r->changed, &r->mutex, seconds_to_ns(0.1));
    }
    pthread_mutex_unlock(&r->mutex);
    return !atomic_load(&w->ending);
}

/* What one round renews of one kind. */
typedef struct {
    const lane_ops *ops;
    trouble *refused;
    job **jobs;
    bool *done;
    size_t n;
    size_t busy; /* of them: locked by somebody, and not renewed */
} round_list;

static bool wants_renewal(const job *j)
{
    return atomic_load(&j->wants_lease) ||
           job_lease_left(j) <= seconds_to_ns(j->lease_seconds * 2 / 3);
}

/* Keeps those of the snapshots that want it; the others are dropped. False: out of memory. */
static bool gather(cb_worker *w, lane_kind kind, bool all, round_list *list)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        job **jobs;
        size_t n;
        if (!lane_snapshot(worker_lane(w, kind, i), &jobs, &n))
            return false;
        job **more = realloc(list->jobs, (list->n + n + 1) * sizeof *more);
        if (!more) {
            snapshot_done(jobs, n);
            return false;
        }
        list->jobs = more;
        for (size_t k = 0; k < n; k++) {
            if (all || wants_renewal(jobs[k]))
                list->jobs[list->n++] = jobs[k];
            else
                job_drop(jobs[k]);
        }
        free(jobs);
    }
    list->done = calloc(list->n + 1, sizeof *list->done);
    return list->done != NULL;
}

static void round_done(round_list *list)
{
    snapshot_done(list->jobs, list->n);
    free(list->done);
}

/* Nobody settled it, and yet it is not ours any more: its outcome will not count. */
static void is_gone(const round_list *list, job *j)
{
    lane *l = j->lane;

    pthread_mutex_lock(&l->mutex);
    bool lost = j->stage != JOB_RETURNED && !j->lease_ends && atomic_load(&j->lease_end) != 0;
    if (lost)
        atomic_store(&j->lease_end, 0);
    pthread_mutex_unlock(&l->mutex);
    if (!lost)
        return;
    list->ops->count_renewed(l->worker->metrics, l->index, 0, 1);
    list->ops->tell_lost(j);
}

static void take_answer(round_list *list, size_t i, cb_lease_state state, int64_t lease_end)
{
    const lane_ops *ops = list->ops;
    job *j = list->jobs[i];

    list->done[i] = true;
    if (state == CB_LEASE_GONE || (ops->has_lost_place && ops->has_lost_place(j)))
        is_gone(list, j);
    list->busy += state == CB_LEASE_BUSY;
    if (state != CB_LEASE_EXTENDED || atomic_load(&j->lease_end) == 0)
        return;
    atomic_store(&j->lease_end, lease_end);
    atomic_store(&j->wants_lease, false);
    ops->count_renewed(j->lane->worker->metrics, j->lane->index, 1, 0);
}

/* What of the list one call renews: all of one length, of one lane or (NULL) of all. */
typedef struct {
    double seconds;
    const lane *lane;
} renewal;

static bool is_in(const round_list *list, size_t i, renewal which)
{
    const job *j = list->jobs[i];

    return !list->done[i] && j->lease_seconds == which.seconds &&
           (!which.lane || j->lane == which.lane);
}

static bool renew_call(cb_worker *w, round_list *list, renewal which, cb_error *e)
{
    job **jobs = calloc(list->n + 1, sizeof *jobs);
    size_t *taken = calloc(list->n + 1, sizeof *taken), n = 0;
    cb_lease_state *states = calloc(list->n + 1, sizeof *states);
    bool asked = jobs && taken && states;

    for (size_t i = 0; asked && i < list->n; i++) {
        if (is_in(list, i, which)) {
            jobs[n] = list->jobs[i];
            taken[n++] = i;
        }
    }
    int64_t asked_at = now_ns();
    if (asked)
        asked = list->ops->extend(w, w->connections[CONNECTION_RENEW].db, jobs, n, which.seconds,
                                  states, e);
    else
        cb_fail(e, CB_AGAIN, "out of memory for %zu leases", list->n);
    for (size_t k = 0; asked && k < n; k++)
        take_answer(list, taken[k], states[k], lease_end_from(asked_at, which.seconds));
    free(states);
    free(taken);
    free(jobs);
    return asked;
}

/* The database refuses the whole: each lane alone, so that a domain which is gone takes no other
 * with it. */
static bool renew_apart(cb_worker *w, round_list *list, double seconds, cb_error *e)
{
    cb_error refused = { 0 };

    for (size_t i = 0; i < list->n; i++) {
        renewal which = { seconds, list->jobs[i]->lane };
        if (!is_in(list, i, which) || renew_call(w, list, which, e))
            continue;
        if (!is_refusal(w->connections[CONNECTION_RENEW].db, e))
            return false;
        refused = *e;
        for (size_t k = i; k < list->n; k++)
            list->done[k] |= is_in(list, k, which);
        worker_pause(w, 0.1); /* who waits for a lease asks every moment */
    }
    if (refused.code != CB_OK)
        trouble_add(list->refused, &refused, "renew", "database.refused");
    else
        trouble_end(list->refused);
    return true;
}

/* Renews all of one length in one call. Returns false when the database did not answer. */
static bool renew_length(cb_worker *w, round_list *list, double seconds)
{
    db_connection *conn = &w->connections[CONNECTION_RENEW];
    cb_error e = { 0 };

    if (renew_call(w, list, (renewal){ seconds, NULL }, &e)) {
        connection_worked(conn);
        trouble_end(list->refused);
        return true;
    }
    if (is_refusal(conn->db, &e) && renew_apart(w, list, seconds, &e)) {
        connection_worked(conn);
        return true;
    }
    connection_failed(conn, &e, "renew");
    return false;
}

static bool renew_kind(cb_worker *w, lane_kind kind, bool all, bool *busy)
{
    round_list list = { .ops = worker_lane(w, kind, 0)->ops,
                        .refused = &w->renewals.refused[kind] };
    /* While it is refused, everything is asked for: that it is over shows at the next round. */
    bool went_well = gather(w, kind, all || atomic_load(&list.refused->there), &list);

    for (size_t i = 0; went_well && i < list.n; i++) {
        if (!list.done[i])
            went_well = renew_length(w, &list, list.jobs[i]->lease_seconds);
    }
    if (went_well && list.n == 0) /* nothing is wanted that could be refused */
        trouble_end(list.refused);
    *busy |= list.busy > 0;
    round_done(&list);
    return went_well;
}

static bool renew_round(cb_worker *w, bool all, bool *busy)
{
    bool went_well = true;

    *busy = false;
    for (lane_kind kind = COMMANDS; went_well && kind < KINDS; kind++)
        went_well = renew_kind(w, kind, all, busy);
    return went_well;
}

static int64_t interval_ns(const cb_worker *w)
{
    double shortest = 60;

    for (size_t i = 0; i < w->n_domains; i++) {
        if (w->lanes[i]->vt_seconds < shortest)
            shortest = w->lanes[i]->vt_seconds;
    }
    return seconds_to_ns(shortest / 6);
}

/* How long until the next round. A command that is locked may be free in a moment and locked again
 * (effects that wait for a lock): it is asked for again and again for a second, then at the next
 * regular round. */
static int64_t next_round_in(int64_t interval, bool busy, int *quick)
{
    enum {
        MOST_QUICK = 100
    };
    static const int64_t quick_ns = 10000000;

    if (busy && ++*quick <= MOST_QUICK)
        return quick_ns;
    *quick = 0;
    return interval;
}

void *renew_thread(void *worker)
{
    cb_worker *w = worker;
    renewer *r = &w->renewals;
    int64_t wait = interval_ns(w);
    bool busy = false;
    int quick = 0;

    while (connection_ready(&w->connections[CONNECTION_RENEW], NULL)) {
        pthread_mutex_lock(&r->mutex);
        if (!r->wanted && !atomic_load(&w->ending))
            waiting_for(&r->changed, &r->mutex, wait);
        bool all = r->all;
        r->wanted = r->all = false;
        pthread_mutex_unlock(&r->mutex);
        if (atomic_load(&w->ending))
            break;

        bool went_well = renew_round(w, all, &busy);
        wait = next_round_in(interval_ns(w), busy, &quick);
        pthread_mutex_lock(&r->mutex);
        if (went_well) {
            r->rounds++;
            pthread_cond_broadcast(&r->changed);
        } else {
            r->wanted = true;
            r->all |= all;
        }
        pthread_mutex_unlock(&r->mutex);
    }
    return NULL;
}
