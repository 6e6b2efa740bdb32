/* A served domain: places and the jobs in them. */
#include "served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"

static const double default_backoff_seconds = 30, default_vt_seconds = 30;

static double vt_of(const cb_worker_domain_options *o)
{
    return o->visibility_timeout_seconds > 0 ? o->visibility_timeout_seconds : default_vt_seconds;
}

static bool copy_settings(served *d, const cb_worker_domain_options *o, cb_error *e)
{
    d->slots = o->concurrent_messages ? o->concurrent_messages : 5;
    d->places = d->slots + o->prefetch;
    if (d->worker->no_commands)
        d->slots = d->places = 0;
    d->fleet_limit = o->fleet_limit ? *o->fleet_limit : -1;
    d->vt_seconds = vt_of(o);
    d->poll_seconds = o->poll_interval_seconds > 0 ? o->poll_interval_seconds : 1;
    d->notify = !o->no_notify;
    d->max_attempts = o->max_attempts ? o->max_attempts : 3;
    d->timeout_seconds = o->handler_timeout_seconds;
    if (d->timeout_seconds == 0)
        d->timeout_seconds = d->vt_seconds < 30 ? (int)d->vt_seconds : 30;
    if (d->timeout_seconds < 1)
        d->timeout_seconds = 1;

    d->n_backoff = o->n_retry_backoff;
    d->backoff = calloc(d->n_backoff + 1, sizeof *d->backoff);
    d->name = strdup(o->domain);
    if (!d->backoff || !d->name || asprintf(&d->queue, "%s__commands", o->domain) < 0)
        return cb_fail(e, CB_MEMORY, "no memory for domain '%s'", o->domain);
    if (d->n_backoff)
        memcpy(d->backoff, o->retry_backoff, d->n_backoff * sizeof *d->backoff);
    return true;
}

static bool check_settings(const cb_worker_domain_options *o, cb_error *e)
{
    if (!o->domain || !*o->domain)
        return cb_fail(e, CB_MISUSE, "a domain has no name");
    if (o->concurrent_messages < 0 || o->prefetch < 0 || o->max_attempts < 0 ||
        o->handler_timeout_seconds < 0 || (o->fleet_limit && *o->fleet_limit < 0))
        return cb_fail(e, CB_MISUSE, "domain '%s' has a negative setting", o->domain);
    if (o->handler_timeout_seconds > vt_of(o))
        return cb_fail(e, CB_MISUSE,
                       "domain '%s': a handler timeout of %d s does not fit into a visibility "
                       "timeout of %g s",
                       o->domain, o->handler_timeout_seconds, vt_of(o));
    return true;
}

bool served_init(served *d, cb_worker *w, size_t index, const cb_worker_domain_options *options,
                 cb_error *e)
{
    d->worker = w;
    d->index = index;
    pthread_mutex_init(&d->mutex, NULL);
    waiting_init(&d->work);
    if (!check_settings(options, e) || !copy_settings(d, options, e))
        return false;
    d->threads = calloc((size_t)d->slots + 1, sizeof *d->threads);
    if (!d->threads)
        return cb_fail(e, CB_MEMORY, "no memory for %d slots", d->slots);
    cb_receive_options receive = { .worker = w->id,
                                   .vt_seconds = d->vt_seconds,
                                   .default_max_attempts = d->max_attempts,
                                   .default_timeout_seconds = d->timeout_seconds };
    return cb_receiver_open(d->name, &receive, &d->receiver, e) &&
           registry_init(&d->handlers, d->name, options->sets, options->n_sets, e);
}

void served_done(served *d)
{
    registry_done(&d->handlers);
    cb_receiver_free(d->receiver);
    free(d->threads);
    free(d->backoff);
    free(d->queue);
    free(d->name);
    pthread_cond_destroy(&d->work);
    pthread_mutex_destroy(&d->mutex);
}

size_t served_free_places(served *d)
{
    size_t taken = atomic_load(&d->in_flight);

    return taken < (size_t)d->places ? (size_t)d->places - taken : 0;
}

/* One at a time: each slot that takes a job wakes the next while there are more. When handlers are
 * quick the ones awake have done the work before another is, and most need not be woken at all. */
void served_wake(served *d)
{
    if (!d->first_ready || d->waking > 0 || d->idle == 0)
        return;
    d->waking++;
    pthread_cond_signal(&d->work);
}

static void make_ready(served *d, job *j)
{
    if (d->last_ready)
        d->last_ready->next_ready = j;
    else
        d->first_ready = j;
    d->last_ready = j;
    atomic_fetch_add(&d->ready, 1);
}

bool served_add(served *d, job *const *jobs, size_t n)
{
    pthread_mutex_lock(&d->mutex);
    bool may_start = !d->giving_back;
    for (size_t i = 0; i < n; i++) {
        job *j = jobs[i];
        j->next = d->jobs;
        if (d->jobs)
            d->jobs->prev = j;
        d->jobs = j;
        if (may_start)
            make_ready(d, j);
        else
            j->stage = JOB_RETURNED;
    }
    atomic_fetch_add(&d->in_flight, n);
    served_wake(d);
    pthread_mutex_unlock(&d->mutex);
    return may_start;
}

void served_end(served *d, job *j)
{
    pthread_mutex_lock(&d->mutex);
    if (j->prev)
        j->prev->next = j->next;
    else
        d->jobs = j->next;
    if (j->next)
        j->next->prev = j->prev;
    atomic_fetch_sub(&d->in_flight, 1);
    pthread_mutex_unlock(&d->mutex);
    job_drop(j);
}

void served_give_back(served *d, void (*give)(job *j))
{
    pthread_mutex_lock(&d->mutex);
    d->giving_back = true;
    job *ready = d->first_ready;
    d->first_ready = d->last_ready = NULL;
    atomic_store(&d->ready, 0);
    for (job *j = ready; j; j = j->next_ready)
        j->stage = JOB_RETURNED;
    pthread_cond_broadcast(&d->work);
    pthread_mutex_unlock(&d->mutex);

    while (ready) {
        job *j = ready;
        ready = j->next_ready;
        give(j);
    }
}

bool served_snapshot(served *d, job ***ret, size_t *n)
{
    *n = 0;
    pthread_mutex_lock(&d->mutex);
    *ret = calloc(atomic_load(&d->in_flight) + 1, sizeof **ret);
    for (job *j = *ret ? d->jobs : NULL; j; j = j->next) {
        atomic_fetch_add(&j->users, 1);
        (*ret)[(*n)++] = j;
    }
    pthread_mutex_unlock(&d->mutex);
    return *ret != NULL;
}

void snapshot_done(job **jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        job_drop(jobs[i]);
    free(jobs);
}

double served_backoff(const served *d, int attempt)
{
    if (d->n_backoff == 0)
        return default_backoff_seconds;
    size_t i = attempt > 0 ? (size_t)attempt - 1 : 0;
    return d->backoff[i < d->n_backoff ? i : d->n_backoff - 1];
}
