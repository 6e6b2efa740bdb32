/* The renewing thread: keeps the leases of everything in flight, also while the worker drains. A lease
 * is renewed once a third of it is over, so what ends sooner costs nothing. */
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

/* What one round renews. */
typedef struct {
    job **jobs;
    cb_lease *leases;
    bool *done;
    size_t n;
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

/* Renews all of one length in one call. Returns false when the database did not answer. */
static bool renew_length(cb_worker *w, round_list *list, double seconds)
{
    db_link *link = &w->links[LINK_RENEW];
    size_t *which = calloc(list->n + 1, sizeof *which), n = 0;
    cb_error e = { 0 };

    for (size_t i = 0; which && i < list->n; i++) {
        const job *j = list->jobs[i];
        if (list->done[i] || j->lease_seconds != seconds)
            continue;
        list->leases[n] = (cb_lease){ .domain = j->domain->name,
                                      .command_id = j->command->command_id,
                                      .lease_no = j->command->lease_no };
        which[n++] = i;
    }
    int64_t asked_at = now_ns();
    bool asked = which && cb_lease_extend(link->db, w->id, list->leases, n, seconds, &e);
    for (size_t k = 0; asked && k < n; k++) {
        job *j = list->jobs[which[k]];
        list->done[which[k]] = true;
        if (list->leases[k].state == CB_LEASE_GONE)
            is_gone(w, j);
        if (list->leases[k].state != CB_LEASE_EXTENDED)
            continue;
        atomic_store(&j->lease_end, lease_end_from(asked_at, seconds));
        atomic_store(&j->wants_lease, false);
        metrics_renewed(w->metrics, j->domain->index, 1, 0);
    }
    free(which);
    if (asked)
        link_worked(link);
    else if (which)
        link_failed(link, &e, "renew");
    return asked;
}

static bool renew_round(cb_worker *w, bool all)
{
    round_list list = { 0 };
    bool went_well = gather(w, all, &list);

    for (size_t i = 0; went_well && i < list.n; i++) {
        if (!list.done[i])
            went_well = renew_length(w, &list, list.jobs[i]->lease_seconds);
    }
    round_done(&list);
    return went_well;
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

void *renew_thread(void *worker)
{
    cb_worker *w = worker;
    renewer *r = &w->renewals;
    int64_t interval = interval_ns(w);

    while (link_ready(&w->links[LINK_RENEW], NULL)) {
        pthread_mutex_lock(&r->mutex);
        if (!r->wanted && !atomic_load(&w->ending))
            waiting_for(&r->changed, &r->mutex, interval);
        bool all = r->all;
        r->wanted = r->all = false;
        pthread_mutex_unlock(&r->mutex);
        if (atomic_load(&w->ending))
            break;

        bool went_well = renew_round(w, all);
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
