/* The lane of a domain's commands. */
#include "command_lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"

static const double default_backoff_seconds = 30;
/* A day: what the database grants at most, and what a sender may ask for as a timeout. */
static const double longest_lease = 86400;

/* ---- settings ---- */

static bool check_settings(const lane *l, const cb_worker_domain_options *o, cb_error *e)
{
    if (o->concurrent_messages < 0 || o->prefetch < 0 || o->max_attempts < 0 ||
        o->handler_timeout_seconds < 0 || (o->fleet_limit && *o->fleet_limit < 0))
        return cb_fail(e, CB_MISUSE, "domain '%s' has a negative setting", o->domain);
    if (o->handler_timeout_seconds > l->vt_seconds)
        return cb_fail(e, CB_MISUSE,
                       "domain '%s': a handler timeout of %d s does not fit into a visibility "
                       "timeout of %g s",
                       o->domain, o->handler_timeout_seconds, l->vt_seconds);
    return true;
}

static int default_timeout(const lane *l, const cb_worker_domain_options *o)
{
    int seconds = o->handler_timeout_seconds;

    if (seconds == 0)
        seconds = l->vt_seconds < 30 ? (int)l->vt_seconds : 30;
    return seconds < 1 ? 1 : seconds;
}

static bool copy_settings(command_lane *l, const cb_worker_domain_options *o, cb_error *e)
{
    l->fleet_limit = o->fleet_limit ? *o->fleet_limit : -1;
    l->n_backoff = o->n_retry_backoff;
    l->backoff = calloc(l->n_backoff + 1, sizeof *l->backoff);
    if (!l->backoff || asprintf(&l->queue, "%s__commands", o->domain) < 0)
        return cb_fail(e, CB_MEMORY, "no memory for domain '%s'", o->domain);
    if (l->n_backoff)
        memcpy(l->backoff, o->retry_backoff, l->n_backoff * sizeof *l->backoff);
    return true;
}

bool command_lane_init(command_lane *l, cb_worker *w, size_t index,
                       const cb_worker_domain_options *o, cb_error *e)
{
    int slots = o->concurrent_messages ? o->concurrent_messages : 5;

    lane_init(&l->lane, w, &command_ops, index, o);
    if (!check_settings(&l->lane, o, e) || !copy_settings(l, o, e) ||
        !lane_open_slots(&l->lane, w->no_commands ? 0 : slots,
                         w->no_commands ? 0 : slots + o->prefetch, e))
        return false;
    cb_receive_options receive = { .worker = w->id,
                                   .vt_seconds = l->lane.vt_seconds,
                                   .default_max_attempts = o->max_attempts ? o->max_attempts : 3,
                                   .default_timeout_seconds = default_timeout(&l->lane, o) };
    return cb_receiver_open(l->lane.name, &receive, &l->receiver, e) &&
           registry_init(&l->handlers, l->lane.name, o->sets, o->n_sets, e);
}

void command_lane_done(command_lane *l)
{
    lane_done(&l->lane);
    registry_done(&l->handlers);
    cb_receiver_free(l->receiver);
    free(l->backoff);
    free(l->queue);
}

double command_backoff(const command_lane *l, int attempt)
{
    if (l->n_backoff == 0)
        return default_backoff_seconds;
    size_t i = attempt > 0 ? (size_t)attempt - 1 : 0;
    return l->backoff[i < l->n_backoff ? i : l->n_backoff - 1];
}

/* ---- jobs ---- */

static const cb_command *command_of(const job *j)
{
    return ((const command_job *)j)->command;
}

static cb_lease lease_of(const job *j)
{
    return (cb_lease){ .domain = j->lane->name,
                       .command_id = command_of(j)->command_id,
                       .lease_no = command_of(j)->lease_no };
}

static void outcome_init(outcome *o, command_job *j)
{
    o->job = j;
    o->settlement.domain = j->command->domain;
    o->settlement.command_id = j->command->command_id;
    o->settlement.lease_no = j->command->lease_no;
}

job *command_job_make(command_lane *l, claim_share *share, const cb_command *command,
                      int64_t lease_end)
{
    command_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    job_init(&j->job, &l->lane, share, lease_end);
    j->lane = l;
    j->command = command;
    j->type = registry_find(&l->handlers, command->command_type);
    /* A command with a longer timeout than the domain's lease gets a lease of its own length. */
    if (command->timeout_seconds > l->lane.vt_seconds)
        j->job.lease_seconds =
            command->timeout_seconds + 2 * lease_margin(command->timeout_seconds);
    if (j->job.lease_seconds > longest_lease)
        j->job.lease_seconds = longest_lease;
    outcome_init(&j->own, j);
    outcome_init(&j->timeout, j);
    return &j->job;
}

static void job_free(job *base)
{
    command_job *j = (command_job *)base;

    cb_context_free(j->context);
    free(j);
}

static void claim_free(void *claim)
{
    cb_claim_free(claim);
}

/* ---- leases ---- */

static bool extend(cb_worker *w, cb_db *db, job *const *jobs, size_t n, double seconds,
                   cb_lease_state *states, cb_error *e)
{
    cb_lease *leases = calloc(n + 1, sizeof *leases);

    if (!leases)
        return cb_fail(e, CB_AGAIN, "no memory to renew %zu leases", n);
    for (size_t i = 0; i < n; i++)
        leases[i] = lease_of(jobs[i]);
    bool asked = cb_lease_extend(db, w->id, leases, n, seconds, e);
    for (size_t i = 0; asked && i < n; i++)
        states[i] = leases[i].state;
    free(leases);
    return asked;
}

/* The fleet's limit keeps the place of a silent holder until its lease and one timeout are over. A
 * handler that runs has timed out by then, an outcome takes no place any more; but what has not begun
 * must not begin, though nobody else has claimed it meanwhile: it is given back. */
static bool has_lost_place(const job *j)
{
    lane *l = j->lane;

    pthread_mutex_lock(&l->mutex);
    bool waits = j->stage == JOB_READY;
    pthread_mutex_unlock(&l->mutex);
    return waits &&
           now_ns() - atomic_load(&j->lease_end) > seconds_to_ns(command_of(j)->timeout_seconds);
}

static void renewed(const job *j)
{
    metrics_renewed(j->lane->worker->metrics, j->lane->index, 1, 0);
}

static void lost(const job *j)
{
    cb_worker *w = j->lane->worker;
    const cb_command *command = command_of(j);

    metrics_renewed(w->metrics, j->lane->index, 0, 1);
    emit(w, CB_LEVEL_WARN, "lease.lost", .domain = j->lane->name,
         .command_id = command->command_id.text, .command_type = command->command_type,
         .lease_no = command->lease_no, .attempt = command->attempt);
}

size_t outcome_bytes(const queued *o)
{
    const cb_settlement *s = &((const outcome *)o)->settlement;

    return (s->result ? strlen(s->result) : 0) + (s->error_message ? strlen(s->error_message) : 0);
}

const lane_ops command_ops = {
    .claim_free = claim_free,
    .job_free = job_free,
    .begin = command_job_begin,
    .run = command_job_run,
    .give_back = command_job_give_back,
    .overdue = command_job_overdue,
    .is_hopeless = command_job_is_hopeless,
    .tell_overdue = command_job_tell_stuck,
    .extend = extend,
    .has_lost_place = has_lost_place,
    .renewed = renewed,
    .lost = lost,
};
