/* A slot: a thread that runs one handler at a time. It may take the next job while the outcome of its
 * last one is being settled: places, not threads, bound what is in flight. */
#include <string.h>

#include "clock.h"
#include "engine.h"

/* A handler may start when its lease outlasts its timeout, margins aside. */
static bool lease_is_enough(const job *j)
{
    double most = j->lease_seconds - 2 * lease_margin(j->lease_seconds);
    double timeout = j->command->timeout_seconds;

    return job_lease_left(j) >= seconds_to_ns(timeout < most ? timeout : most);
}

/* With the domain's mutex held. False: the lease is lost, or there is no time to wait for it. */
static bool wait_for_lease(served *d, job *j)
{
    while (!lease_is_enough(j)) {
        if (d->giving_back || atomic_load(&j->lease_end) == 0)
            return false;
        atomic_store(&j->wants_lease, true);
        pthread_mutex_unlock(&d->mutex);
        renew_soon(d->worker);
        worker_pause(d->worker, 0.01);
        pthread_mutex_lock(&d->mutex);
    }
    return true;
}

static job *pop(served *d)
{
    job *j = d->first_ready;

    d->first_ready = j->next_ready;
    atomic_fetch_sub(&d->ready, 1);
    if (!d->first_ready)
        d->last_ready = NULL;
    served_wake(d);
    return j;
}

/* The next job, marked as running; NULL: the slot is to end. *enters tells whether its handler may. */
static job *next_job(served *d, bool *enters)
{
    job *j = NULL;

    pthread_mutex_lock(&d->mutex);
    while (!d->first_ready && !d->ending) {
        d->idle++;
        pthread_cond_wait(&d->work, &d->mutex);
        d->idle--;
        if (d->waking > 0)
            d->waking--;
    }
    if (d->first_ready) {
        j = pop(d);
        *enters = wait_for_lease(d, j);
        j->stage = JOB_RUNNING;
        j->started_at = now_ns();
        atomic_store(&j->deadline, j->started_at + seconds_to_ns(j->command->timeout_seconds));
        d->running++;
    }
    pthread_mutex_unlock(&d->mutex);
    return j;
}

/* When this worker first met the type, among those it does not know; forgotten after a grace without
 * it, so that an old meeting does not fail a new rollout. More types at once than there is room for share
 * the last place: made-up types must not push each other out, or none would ever end. With the domain's
 * mutex held. */
static int64_t unknown_since(served *d, const char *command_type, int64_t now, int64_t grace)
{
    unknown_type *place = NULL, *shared = &d->unknown[UNKNOWN_TYPES - 1];

    for (size_t i = 0; i < UNKNOWN_TYPES; i++) {
        unknown_type *u = &d->unknown[i];
        bool fresh = u->last > 0 && now - u->last < grace + seconds_to_ns(60);
        if (fresh && strncmp(u->command_type, command_type, sizeof u->command_type - 1) == 0) {
            u->last = now;
            return u->first;
        }
        if (!fresh && !place)
            place = u;
    }
    if (!place) {
        shared->last = now;
        return shared->first;
    }
    strncpy(place->command_type, command_type, sizeof place->command_type - 1);
    place->first = place->last = now;
    return now;
}

/* No handler here has this type. Perhaps a newer worker has: given back for a while, then permanent. */
static void settle_unknown(cb_worker *w, served *d, job *j)
{
    cb_settlement *s = &j->own.settlement;
    int64_t now = now_ns(), grace = seconds_to_ns(w->unknown_grace_seconds);
    double again = w->unknown_grace_seconds / 4;

    pthread_mutex_lock(&d->mutex);
    int64_t since = unknown_since(d, j->command->command_type, now, grace);
    pthread_mutex_unlock(&d->mutex);

    s->error_code = "HANDLER_NOT_FOUND";
    if (now - since < grace) {
        s->outcome = CB_INTERRUPTED;
        s->retry_seconds = again < 5 ? again : 5;
        return;
    }
    s->outcome = CB_PERMANENT;
    s->error_message = "no handler set of this domain has a handler for the command type";
}

static void run(cb_worker *w, served *d, job *j)
{
    cb_settlement *s = &j->own.settlement;
    cb_error e;

    if (j->type < 0) {
        settle_unknown(w, d, j);
        return;
    }
    if (!cb_context_open(j->command, &job_host, j, &j->context, &e)) {
        s->outcome = CB_INTERRUPTED;
        s->retry_seconds = 1;
        return;
    }
    cb_context_run(j->context, d->handlers.entries[j->type].run, w->result_limit, s);
    metrics_run(w->metrics, d->index, j->type, (now_ns() - j->started_at) / 1000);

    double backoff = served_backoff(d, j->command->attempt);
    if (s->outcome == CB_TRANSIENT && s->retry_seconds < backoff)
        s->retry_seconds = backoff;
    /* One that gives everything back must not spin; an ending worker hands over at once. */
    if (s->outcome == CB_INTERRUPTED && !atomic_load(&w->stopping))
        s->retry_seconds = 1;
}

static void hand_over(cb_worker *w, served *d, job *j)
{
    pthread_mutex_lock(&d->mutex);
    j->stage = JOB_RETURNED;
    j->returned_at = now_ns();
    int64_t typical = atomic_load(&d->typical_ns);
    atomic_store(&d->typical_ns, typical + (j->returned_at - j->started_at - typical) / 8);
    d->running--;
    bool late = j->timed_out, parked = j->timeout_pending;
    if (late)
        d->overdue--;
    if (j->given_up)
        atomic_fetch_sub(&d->given_up, 1);
    j->parked = parked;
    pthread_mutex_unlock(&d->mutex);

    if (parked)
        return;
    bool with_effects = !late && j->context && j->own.settlement.outcome == CB_SUCCESS &&
                        cb_context_effects(j->context) > 0;
    if (with_effects)
        outcomes_put(&w->effecting, &j->own.queued);
    else
        settler_put(&w->settling, &j->own.queued);
}

void job_give_back(job *j)
{
    j->own.settlement.outcome = CB_INTERRUPTED;
    settler_put(&j->domain->worker->settling, &j->own.queued);
}

void *slot_thread(void *served_domain)
{
    served *d = served_domain;
    cb_worker *w = d->worker;
    bool enters;
    job *j;

    while ((j = next_job(d, &enters))) {
        if (enters)
            run(w, d, j);
        else
            j->own.settlement.outcome = CB_INTERRUPTED;
        hand_over(w, d, j);
    }
    return NULL;
}
