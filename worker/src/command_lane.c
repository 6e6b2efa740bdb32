/* The lane of a domain's commands. */
#include "command_lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "defaults.h"
#include "engine.h"
#include "fail.h"

static const double default_backoff[] = { DEFAULT_RETRY_BACKOFF };
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
        seconds = l->vt_seconds < DEFAULT_HANDLER_TIMEOUT_SECONDS ? (int)l->vt_seconds
                                                                  : DEFAULT_HANDLER_TIMEOUT_SECONDS;
    return seconds < 1 ? 1 : seconds;
}

static bool copy_settings(command_lane *l, const cb_worker_domain_options *o, cb_error *e)
{
    l->fleet_limit = o->fleet_limit ? *o->fleet_limit : -1;
    const double *backoff = o->retry_backoff ? o->retry_backoff : default_backoff;

    l->n_backoff = o->retry_backoff ? o->n_retry_backoff : CB_COUNT(default_backoff);
    l->backoff = calloc(l->n_backoff + 1, sizeof *l->backoff);
    if (!l->backoff || asprintf(&l->queue, "%s__commands", o->domain) < 0)
        return fail_memory(e);
    if (l->n_backoff)
        memcpy(l->backoff, backoff, l->n_backoff * sizeof *l->backoff);
    return true;
}

bool command_lane_init(command_lane *l, cb_worker *w, size_t index,
                       const cb_worker_domain_options *o, cb_error *e)
{
    int slots = o->concurrent_messages ? o->concurrent_messages : DEFAULT_CONCURRENT_MESSAGES;

    lane_init(&l->lane, w, &command_ops, index, o);
    if (!check_settings(&l->lane, o, e) || !copy_settings(l, o, e) ||
        !lane_open_slots(&l->lane, w->no_commands ? 0 : slots,
                         w->no_commands ? 0 : slots + o->prefetch, e))
        return false;
    l->lane.claiming.sleep.queues = (const char *const *)&l->queue;
    l->lane.claiming.sleep.n_queues = l->lane.first_reply = w->no_commands ? 0 : 1;
    cb_receive_options receive = { .worker = w->id,
                                   .vt_seconds = l->lane.vt_seconds,
                                   .default_max_attempts =
                                       o->max_attempts ? o->max_attempts : DEFAULT_MAX_ATTEMPTS,
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
        return DEFAULT_EMPTY_BACKOFF_SECONDS;
    size_t i = attempt > 0 ? (size_t)attempt - 1 : 0;
    return l->backoff[i < l->n_backoff ? i : l->n_backoff - 1];
}

/* ---- claiming ---- */

/* What claims of commands may hold of an instance's memory over all its domains, and one command
 * more of each: with the memory of processes (process_memory.h) it fits the smallest limit that
 * deploy/ has, 256 MiB. */
static const size_t most_bytes = 32 * 1024 * 1024;
/* Of that one claim: its memory comes back with the last of its commands, however slow that one
 * is. */
static const size_t most_bytes_at_once = 8 * 1024 * 1024;

static size_t command_room(const cb_worker *w)
{
    size_t held = atomic_load(&w->claimed_bytes[COMMANDS]);

    return held < most_bytes ? most_bytes - held : 0;
}

/* A domain that has nothing in flight may claim whatever the others hold: one command, as room is
 * over. */
static size_t command_free_places(const lane *l)
{
    size_t n = lane_free_places(l);

    return command_room(l->worker) > 0 || n == (size_t)l->n_places ? n : 0;
}

/* With the settler busy with one half of the places, the other half can be claimed. */
static size_t most_at_once(const lane *l)
{
    return l->n_places >= 8 ? (size_t)(l->n_places + 1) / 2 : (size_t)l->n_places;
}

static void command_tell_claimed(const lane *l, const cb_claim *claim)
{
    cb_worker *w = l->worker;
    size_t n = cb_claim_count(claim), poisoned = cb_claim_poisoned(claim),
           exhausted = cb_claim_exhausted(claim);

    metrics_claim(w->metrics, l->index, n, poisoned, exhausted);
    if (n > 0)
        emit(w, CB_LEVEL_DEBUG, "commands.claimed", .domain = l->name, .count = (int64_t)n);
    if (poisoned > 0)
        emit(w, CB_LEVEL_WARN, "message.poisoned", .domain = l->name, .count = (int64_t)poisoned,
             .hint = "archived: see audit events POISON_ARCHIVED");
    if (exhausted > 0)
        emit(w, CB_LEVEL_WARN, "lease.exhausted", .domain = l->name, .count = (int64_t)exhausted,
             .hint =
                 "commands whose runs all ended without an outcome are in the TSQ: commandbus tsq "
                 "list");
}

static bool command_claim(lane *l, cb_db *db, size_t quantity, claimed *ret, cb_error *e)
{
    cb_receiver *receiver = ((command_lane *)l)->receiver;
    size_t left = command_room(l->worker),
           bytes = left < most_bytes_at_once ? left : most_bytes_at_once;
    OWNED(cb_claim) taken = NULL;

    cb_receiver_claim_bytes(receiver, bytes > 0 ? (int64_t)bytes : 1); /* and one more than that */
    if (quantity > most_at_once(l))
        quantity = most_at_once(l);
    if (bytes == 0)
        quantity = 1;
    if (!cb_receive(db, receiver, (int)quantity, &taken, e))
        return false;
    command_tell_claimed(l, taken);
    ret->n = cb_claim_count(taken);
    ret->bytes = cb_claim_bytes(taken);
    ret->seen = ret->n + cb_claim_poisoned(taken) + cb_claim_exhausted(taken);
    ret->more = ret->seen >= quantity || cb_claim_more(taken);
    if (ret->n > 0)
        ret->claim = cb_claim_take(&taken);
    return true;
}

static void command_claim_free(void *claim)
{
    cb_claim_free(claim);
}

/* ---- jobs ---- */

static const cb_command *command_of(const job *j)
{
    return ((const command_job *)j)->command;
}

static void outcome_init(command_outcome *o, command_job *j)
{
    o->outcome.job = &j->job;
    o->settlement.domain = j->command->domain;
    o->settlement.command_id = j->command->command_id;
    o->settlement.lease_no = j->command->lease_no;
}

static job *command_job_make(lane *base, claim_share *share, size_t i, int64_t lease_end)
{
    command_lane *l = (command_lane *)base;
    command_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    job_init(&j->job, base, share, lease_end);
    j->command = cb_claim_at(share->claim, i);
    j->type = registry_find(&l->handlers, j->command->command_type);
    /* A command with a longer timeout than the domain's lease gets a lease of its own length. */
    double timeout = j->command->timeout_seconds;
    if (timeout > base->vt_seconds)
        j->job.lease_seconds = timeout + 2 * lease_margin(timeout);
    if (j->job.lease_seconds > longest_lease)
        j->job.lease_seconds = longest_lease;
    outcome_init(&j->own, j);
    outcome_init(&j->timeout, j);
    metrics_wait(base->worker->metrics, base->index, j->command->waited_us);
    return &j->job;
}

static void command_job_free(job *base)
{
    command_job *j = (command_job *)base;

    cb_context_free(j->context);
    free(j);
}

/* ---- leases ---- */

/* The caller frees them. */
static cb_lease *command_leases(job *const *jobs, size_t n, cb_error *e)
{
    cb_lease *leases = calloc(n + 1, sizeof *leases);

    for (size_t i = 0; leases && i < n; i++)
        leases[i] = (cb_lease){ .domain = jobs[i]->lane->name,
                                .command_id = command_of(jobs[i])->command_id,
                                .lease_no = command_of(jobs[i])->lease_no };
    if (!leases)
        cb_fail(e, CB_AGAIN, "out of memory for %zu leases", n);
    return leases;
}

static bool command_extend(cb_worker *w, cb_db *db, job *const *jobs, size_t n, double seconds,
                           cb_lease_state *states, cb_error *e)
{
    cb_lease *leases = command_leases(jobs, n, e);
    bool asked = leases && cb_lease_extend(db, w->id, leases, n, seconds, e);

    for (size_t i = 0; asked && i < n; i++)
        states[i] = leases[i].state;
    free(leases);
    return asked;
}

static bool command_release_unknown(lane *l, cb_db *db, job *const *jobs, size_t n,
                                    size_t *released, cb_error *e)
{
    cb_lease *held = command_leases(jobs, n, e);
    bool asked = held && cb_lease_release_unknown(db, l->name, l->worker->id, held, n, released, e);

    free(held);
    return asked;
}

/* The fleet's limit keeps the place of a silent holder until its lease and one timeout are over. A
 * handler that runs has timed out by then, an outcome takes no place any more; but what has not
 * begun must not begin, though nobody else has claimed it meanwhile: it is given back. */
static bool command_has_lost_place(const job *j)
{
    lane *l = j->lane;

    pthread_mutex_lock(&l->mutex);
    bool waits = j->stage == JOB_READY;
    pthread_mutex_unlock(&l->mutex);
    return waits &&
           now_ns() - atomic_load(&j->lease_end) > seconds_to_ns(command_of(j)->timeout_seconds);
}

static void command_tell_lost(const job *j)
{
    const cb_command *command = command_of(j);

    emit(j->lane->worker, CB_LEVEL_WARN, "lease.lost", .domain = j->lane->name,
         .command_id = command->command_id.text, .command_type = command->command_type,
         .lease_no = command->lease_no, .attempt = command->attempt);
}

static bool command_is_bursting(const lane *l)
{
    static const int64_t quick_ns = 100000;

    return atomic_load(&l->ready) > 0 &&
           atomic_load(&((const command_lane *)l)->typical_ns) < quick_ns;
}

const lane_ops command_ops = {
    .kind = COMMANDS,
    .claim_connection = CONNECTION_CLAIM,
    .settle_connection = CONNECTION_SETTLE,
    .free_places = command_free_places,
    .claim = command_claim,
    .claim_free = command_claim_free,
    .job_make = command_job_make,
    .job_free = command_job_free,
    .release_unknown = command_release_unknown,
    .count_released = metrics_released,
    .released_event = "lease.released",
    .released_hint = "claimed, but the answer never arrived: given back uncharged",
    .begin = command_job_begin,
    .run = command_job_run,
    .give_back = command_job_give_back,
    .overdue = command_job_overdue,
    .is_hopeless = command_job_is_hopeless,
    .tell_overdue = command_job_tell_stuck,
    .extend = command_extend,
    .has_lost_place = command_has_lost_place,
    .count_renewed = metrics_renewed,
    .tell_lost = command_tell_lost,
    .item_size = sizeof(cb_settlement),
    .item_at = offsetof(command_outcome, settlement),
    .verdict_at = offsetof(cb_settlement, verdict),
    .bytes = command_outcome_bytes,
    .settle = command_outcomes_settle,
    .settled = command_outcome_settled,
    .tell_refused = command_outcome_tell_refused,
    .is_bursting = command_is_bursting,
};
