/* The renewing thread: keeps the leases of everything in flight, also while the worker drains. A lease
 * is renewed once a third of it is over, so what ends sooner costs nothing. */
#include <stdlib.h>

#include "clock.h"
#include "engine.h"
#include "processes.h"

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

/* What one round renews. */
typedef struct {
    job **jobs;
    cb_lease *leases;
    bool *done;
    size_t n;
    size_t busy; /* of them: locked by somebody, and not renewed */
} round_list;

static bool wants_renewal(job *j, bool all)
{
    return all || atomic_load(&j->wants_lease) ||
           job_lease_left(j) <= seconds_to_ns(j->lease_seconds * 2 / 3);
}

/* Keeps those of the snapshot that want it; the others are dropped. False: no memory. */
static bool gather(cb_worker *w, bool all, round_list *list)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        job **jobs;
        size_t n;
        if (!served_snapshot(&w->domains[i], &jobs, &n))
            return false;
        job **more = realloc(list->jobs, (list->n + n + 1) * sizeof *more);
        if (!more) {
            snapshot_done(jobs, n);
            return false;
        }
        list->jobs = more;
        for (size_t k = 0; k < n; k++) {
            if (wants_renewal(jobs[k], all))
                list->jobs[list->n++] = jobs[k];
            else
                job_drop(jobs[k]);
        }
        free(jobs);
    }
    list->leases = calloc(list->n + 1, sizeof *list->leases);
    list->done = calloc(list->n + 1, sizeof *list->done);
    return list->leases && list->done;
}

static void round_done(round_list *list)
{
    snapshot_done(list->jobs, list->n);
    free(list->leases);
    free(list->done);
}

/* Nobody settled it, and yet it is not ours any more: its outcome will not count. */
static void is_gone(cb_worker *w, job *j)
{
    served *d = j->domain;

    pthread_mutex_lock(&d->mutex);
    bool lost = j->stage != JOB_RETURNED && !j->timed_out && atomic_load(&j->lease_end) != 0;
    if (lost)
        atomic_store(&j->lease_end, 0);
    pthread_mutex_unlock(&d->mutex);
    if (!lost)
        return;
    metrics_renewed(w->metrics, d->index, 0, 1);
    emit(w, CB_LEVEL_WARN, "lease.lost", .domain = d->name,
         .command_id = j->command->command_id.text, .command_type = j->command->command_type,
         .lease_no = j->command->lease_no, .attempt = j->command->attempt);
}

/* What of the list one call renews: all of one length, of one domain or (NULL) of all. */
typedef struct {
    double seconds;
    const served *domain;
} renewal;

/* The fleet's limit keeps the place of a silent holder until its lease and one timeout are over. A
 * handler that runs has timed out by then, an outcome takes no place any more; but what has not begun
 * must not begin, though nobody else has claimed it meanwhile: it is given back. */
static bool has_lost_its_place(job *j)
{
    served *d = j->domain;

    pthread_mutex_lock(&d->mutex);
    bool waits = j->stage == JOB_READY;
    pthread_mutex_unlock(&d->mutex);
    return waits &&
           now_ns() - atomic_load(&j->lease_end) > seconds_to_ns(j->command->timeout_seconds);
}

static void take_answer(cb_worker *w, round_list *list, size_t i, const cb_lease *lease,
                        int64_t lease_end)
{
    job *j = list->jobs[i];

    list->done[i] = true;
    if (lease->state == CB_LEASE_GONE || has_lost_its_place(j))
        is_gone(w, j);
    list->busy += lease->state == CB_LEASE_BUSY;
    if (lease->state != CB_LEASE_EXTENDED || atomic_load(&j->lease_end) == 0)
        return;
    atomic_store(&j->lease_end, lease_end);
    atomic_store(&j->wants_lease, false);
    metrics_renewed(w->metrics, j->domain->index, 1, 0);
}

static bool renew_call(cb_worker *w, round_list *list, renewal which, cb_error *e)
{
    size_t *taken = calloc(list->n + 1, sizeof *taken), n = 0;

    if (!taken)
        return cb_fail(e, CB_AGAIN, "no memory to renew %zu leases", list->n);
    for (size_t i = 0; i < list->n; i++) {
        const job *j = list->jobs[i];
        if (list->done[i] || j->lease_seconds != which.seconds ||
            (which.domain && j->domain != which.domain))
            continue;
        list->leases[n] = (cb_lease){ .domain = j->domain->name,
                                      .command_id = j->command->command_id,
                                      .lease_no = j->command->lease_no };
        taken[n++] = i;
    }
    int64_t asked_at = now_ns();
    bool asked = cb_lease_extend(w->links[LINK_RENEW].db, w->id, list->leases, n, which.seconds, e);
    for (size_t k = 0; asked && k < n; k++)
        take_answer(w, list, taken[k], &list->leases[k], lease_end_from(asked_at, which.seconds));
    free(taken);
    return asked;
}

/* The database refuses the whole: each domain alone, so that one which is gone takes no other with it. */
static bool renew_apart(cb_worker *w, round_list *list, double seconds, cb_error *e)
{
    cb_error refused = { 0 };

    for (size_t i = 0; i < list->n; i++) {
        served *d = list->jobs[i]->domain;
        if (list->done[i] || list->jobs[i]->lease_seconds != seconds)
            continue;
        if (renew_call(w, list, (renewal){ seconds, d }, e))
            continue;
        if (!is_refusal(w->links[LINK_RENEW].db, e))
            return false;
        refused = *e;
        for (size_t k = i; k < list->n; k++)
            list->done[k] |= list->jobs[k]->domain == d && list->jobs[k]->lease_seconds == seconds;
        worker_pause(w, 0.1); /* who waits for a lease asks every moment */
    }
    if (refused.code != CB_OK)
        trouble_add(&w->renewals.refused, &refused, "renew", "database.refused");
    else
        trouble_end(&w->renewals.refused);
    return true;
}

/* Renews all of one length in one call. Returns false when the database did not answer. */
static bool renew_length(cb_worker *w, round_list *list, double seconds)
{
    db_link *link = &w->links[LINK_RENEW];
    cb_error e = { 0 };

    if (renew_call(w, list, (renewal){ seconds, NULL }, &e)) {
        link_worked(link);
        trouble_end(&w->renewals.refused);
        return true;
    }
    if (is_refusal(link->db, &e) && renew_apart(w, list, seconds, &e)) {
        link_worked(link);
        return true;
    }
    link_failed(link, &e, "renew");
    return false;
}

static bool renew_round(cb_worker *w, bool all, bool *busy)
{
    round_list list = { 0 };
    bool went_well = gather(w, all, &list);

    for (size_t i = 0; went_well && i < list.n; i++) {
        if (!list.done[i])
            went_well = renew_length(w, &list, list.jobs[i]->lease_seconds);
    }
    if (went_well && list.n == 0) /* nothing is wanted that could be refused */
        trouble_end(&w->renewals.refused);
    *busy = list.busy > 0;
    round_done(&list);
    return went_well && processes_renew(w, all);
}

static int64_t interval_ns(const cb_worker *w)
{
    double shortest = 60;

    for (size_t i = 0; i < w->n_domains; i++) {
        if (w->domains[i].vt_seconds < shortest)
            shortest = w->domains[i].vt_seconds;
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

    while (link_ready(&w->links[LINK_RENEW], NULL)) {
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
