/* A domain's processes: slots and the jobs in them. */
#include "process_domain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "processes.h"

static size_t count_types(const cb_worker_domain_options *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n_sets; i++)
        n += o->sets[i] ? o->sets[i]->n_processes : 0;
    return n;
}

static const char *set_of(const cb_worker_domain_options *o, const cb_process_type *type)
{
    for (size_t i = 0; i < o->n_sets; i++) {
        for (size_t k = 0; k < o->sets[i]->n_processes; k++) {
            if (o->sets[i]->processes[k] == type)
                return o->sets[i]->name;
        }
    }
    return "";
}

static bool list_type(process_domain *d, const cb_worker_domain_options *o, const cb_module *set,
                      const cb_process_type *type, cb_error *e)
{
    if (!type || !type->name || !type->domain)
        return cb_fail(e, CB_MISUSE, "set '%s' has a process type without a name or a domain",
                       set->name);
    if (strcmp(type->domain, d->name) != 0)
        return cb_fail(e, CB_MISUSE,
                       "process type '%.60s' of set '%s' belongs to domain '%.47s', not to '%s', "
                       "which has that set among its handlers",
                       type->name, set->name, type->domain, d->name);
    for (size_t i = 0; i < d->n_kinds; i++) {
        if (strcmp(d->listed[i]->name, type->name) == 0)
            return cb_fail(e, CB_MISUSE,
                           "domain '%s': sets '%s' and '%s' both offer process type '%.60s'",
                           d->name, set_of(o, d->listed[i]), set->name, type->name);
    }
    d->listed[d->n_kinds++] = type;
    return true;
}

static bool open_types(process_domain *d, const cb_worker_options *all,
                       const cb_worker_domain_options *o, cb_error *e)
{
    d->listed = calloc(count_types(o) + 1, sizeof *d->listed);
    if (!d->listed)
        return cb_fail(e, CB_MEMORY, "no memory for process types");
    for (size_t i = 0; i < o->n_sets; i++) {
        for (size_t k = 0; k < o->sets[i]->n_processes; k++) {
            if (!list_type(d, o, o->sets[i], o->sets[i]->processes[k], e))
                return false;
        }
    }
    if (d->n_kinds == 0)
        return true;
    if (!cb_process_types_open(d->listed, d->n_kinds, all->routes, all->n_routes, all->settings,
                               all->n_settings, &d->types, e))
        return cb_fail_while(e, "opening the process types of domain '%s'", d->name);
    d->kinds = cb_process_types_kinds(d->types);
    d->n_kinds = cb_process_types_count(d->types);
    return true;
}

static bool add_queue(process_domain *d, const char *first, const char *second)
{
    char *name = NULL;

    if (asprintf(&name, "%s%s", first, second) < 0)
        return false;
    for (size_t i = 0; i < d->n_queues; i++) {
        if (strcmp(d->queues[i], name) == 0) {
            free(name);
            return true;
        }
    }
    d->queues[d->n_queues++] = name;
    return true;
}

static bool name_queues(process_domain *d, const cb_worker_options *all, cb_error *e)
{
    d->queues = calloc(d->n_kinds + 2, sizeof *d->queues);
    bool ok = d->queues && add_queue(d, d->name, "__processes");

    if (ok && !all->no_replies)
        ok = add_queue(d, d->name, "__replies");
    for (size_t i = 0; ok && !all->no_replies && i < d->n_kinds; i++)
        ok = !d->kinds[i].reply_queue || add_queue(d, d->kinds[i].reply_queue, "");
    return ok || cb_fail(e, CB_MEMORY, "no memory for domain '%s'", d->name);
}

bool process_domain_init(process_domain *d, cb_worker *w, size_t index,
                         const cb_worker_options *options, cb_error *e)
{
    const cb_worker_domain_options *o = &options->domains[index];

    d->worker = w;
    d->index = index;
    d->name = w->domains[index].name;
    d->vt_seconds = w->domains[index].vt_seconds;
    pthread_mutex_init(&d->mutex, NULL);
    waiting_init(&d->work);
    if (o->concurrent_processes < 0)
        return cb_fail(e, CB_MISUSE, "domain '%s' has a negative setting", d->name);
    if (!open_types(d, options, o, e) || !name_queues(d, options, e))
        return false;
    bool runs = d->n_kinds > 0 && !options->no_processes;
    int messages = o->concurrent_messages ? o->concurrent_messages : 5;
    if (runs)
        d->n_slots = o->concurrent_processes ? o->concurrent_processes : messages;
    d->claim = (cb_process_claim_options){ .worker = w->id,
                                           .kinds = d->kinds,
                                           .n_kinds = runs ? d->n_kinds : 0,
                                           .vt_seconds = d->vt_seconds,
                                           .reply_queues = (const char *const *)&d->queues[1],
                                           .n_reply_queues = d->n_queues - 1,
                                           .reply_grace_seconds = options->reply_grace_seconds };
    d->host = process_run_host;
    d->host.lease_seconds = d->vt_seconds;
    d->host.renews = true;
    d->slots = calloc((size_t)d->n_slots + 1, sizeof *d->slots);
    for (int i = 0; d->slots && i < d->n_slots; i++) {
        d->slots[i].domain = d;
        if (!cb_run_open(d->types, &d->slots[i].run, e))
            return false;
    }
    return d->slots || cb_fail(e, CB_MEMORY, "no memory for %d slots", d->n_slots);
}

/* What was never settled: its lease ends by itself. */
static void drop_jobs(process_domain *d)
{
    while (d->jobs) {
        process_job *j = d->jobs;
        d->jobs = j->next;
        process_job_drop(j);
    }
}

void process_domain_done(process_domain *d)
{
    if (!d->worker) /* never opened */
        return;
    drop_jobs(d);
    for (int i = 0; d->slots && i < d->n_slots; i++)
        cb_run_free(d->slots[i].run);
    free(d->slots);
    for (size_t i = 0; i < d->n_queues; i++)
        free(d->queues[i]);
    free(d->queues);
    cb_process_types_free(d->types);
    free(d->listed);
    pthread_cond_destroy(&d->work);
    pthread_mutex_destroy(&d->mutex);
}

size_t process_domain_free(const process_domain *d)
{
    size_t taken = atomic_load(&d->in_flight);

    return taken < (size_t)d->n_slots ? (size_t)d->n_slots - taken : 0;
}

static void link_job(process_domain *d, process_job *j)
{
    j->next = d->jobs;
    if (d->jobs)
        d->jobs->prev = j;
    d->jobs = j;
    if (d->last_ready)
        d->last_ready->next_ready = j;
    else
        d->first_ready = j;
    d->last_ready = j;
}

static void unlink_job(process_domain *d, process_job *j)
{
    if (j->prev)
        j->prev->next = j->next;
    else
        d->jobs = j->next;
    if (j->next)
        j->next->prev = j->prev;
    atomic_fetch_sub(&d->in_flight, 1);
}

/* One slot after the other: whoever takes a job wakes the next, and often runs several before that one is
 * awake. With the mutex held. */
static void wake_one(process_domain *d)
{
    if (!d->first_ready || d->idle == 0 || d->waking)
        return;
    d->waking = true;
    pthread_cond_signal(&d->work);
}

bool process_domain_add(process_domain *d, process_job *const *jobs, size_t n)
{
    pthread_mutex_lock(&d->mutex);
    bool may_start = !d->giving_back;
    for (size_t i = 0; may_start && i < n; i++)
        link_job(d, jobs[i]);
    if (may_start) {
        atomic_fetch_add(&d->in_flight, n);
        wake_one(d);
    }
    pthread_mutex_unlock(&d->mutex);
    return may_start;
}

process_job *process_domain_next(process_domain *d)
{
    pthread_mutex_lock(&d->mutex);
    while (!d->first_ready && !d->ending) {
        d->idle++;
        pthread_cond_wait(&d->work, &d->mutex);
        d->idle--;
        d->waking = false;
    }
    process_job *j = d->first_ready;
    if (j) {
        d->first_ready = j->next_ready;
        if (!d->first_ready)
            d->last_ready = NULL;
        wake_one(d);
    }
    pthread_mutex_unlock(&d->mutex);
    return j;
}

void process_domain_end(process_domain *d, process_job *j)
{
    pthread_mutex_lock(&d->mutex);
    unlink_job(d, j);
    pthread_mutex_unlock(&d->mutex);
    process_job_drop(j);
}

bool process_domain_give_back(process_domain *d)
{
    pthread_mutex_lock(&d->mutex);
    d->giving_back = true;
    process_job *ready = d->first_ready;
    d->first_ready = d->last_ready = NULL;
    for (process_job *j = ready; j; j = j->next_ready)
        unlink_job(d, j);
    pthread_mutex_unlock(&d->mutex);

    bool any = ready != NULL;
    while (ready) {
        process_job *j = ready;
        ready = j->next_ready;
        process_job_drop(j);
    }
    return any;
}

bool process_domain_snapshot(process_domain *d, process_job ***ret, size_t *n)
{
    *n = 0;
    pthread_mutex_lock(&d->mutex);
    *ret = calloc(atomic_load(&d->in_flight) + 1, sizeof **ret);
    for (process_job *j = *ret ? d->jobs : NULL; j; j = j->next) {
        atomic_fetch_add(&j->users, 1);
        (*ret)[(*n)++] = j;
    }
    pthread_mutex_unlock(&d->mutex);
    return *ret != NULL;
}

void process_snapshot_done(process_job **jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        process_job_drop(jobs[i]);
    free(jobs);
}
