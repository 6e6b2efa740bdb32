/* Running commands: what a slot does with one, what its handler can ask, and what comes of it. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "engine.h"

/* ---- beginning ---- */

/* A handler may start when its lease outlasts its timeout, margins aside. */
static bool lease_is_enough(const command_job *j)
{
    double most = j->job.lease_seconds - 2 * lease_margin(j->job.lease_seconds);
    double timeout = j->command->timeout_seconds;

    return job_lease_left(&j->job) >= seconds_to_ns(timeout < most ? timeout : most);
}

/* With the lane's mutex held. False: the lease is lost, or there is no time to wait for it. */
static bool wait_for_lease(lane *l, command_job *j)
{
    while (!lease_is_enough(j)) {
        if (l->giving_back || atomic_load(&j->job.lease_end) == 0)
            return false;
        atomic_store(&j->job.wants_lease, true);
        pthread_mutex_unlock(&l->mutex);
        renew_soon(l->worker);
        worker_pause(l->worker, 0.01);
        pthread_mutex_lock(&l->mutex);
    }
    return true;
}

void command_job_begin(job *base)
{
    command_job *j = (command_job *)base;

    j->enters = wait_for_lease(base->lane, j);
    watch_begin(base, NULL, seconds_to_ns(j->command->timeout_seconds));
}

/* ---- what a handler can ask ---- */

enum {
    MOST_TIMEOUTS = 10
};

static int64_t command_remaining_ms(void *arg)
{
    const command_job *j = arg;
    int64_t deadline = atomic_load(&j->job.deadline), lease_end = atomic_load(&j->job.lease_end);
    int64_t left = (deadline < lease_end ? deadline : lease_end) - now_ns();

    return left > 0 ? left / 1000000 : 0;
}

static bool command_is_lost(void *arg)
{
    return command_remaining_ms(arg) == 0;
}

/* Never more than one timeout from now, and only under a lease: a silent holder's capacity comes
 * back after its lease and one timeout, and that must stay true. */
static bool command_extend_timeout(void *arg, int64_t ms)
{
    command_job *j = arg;
    lane *l = j->job.lane;
    int64_t timeout = seconds_to_ns(j->command->timeout_seconds), now = now_ns();
    bool granted = false;

    if (ms <= 0)
        return false;
    int64_t wanted = ms < timeout / 1000000 ? now + ms * 1000000 : now + timeout;
    pthread_mutex_lock(&l->mutex);
    if (wanted > j->job.began + MOST_TIMEOUTS * timeout)
        wanted = j->job.began + MOST_TIMEOUTS * timeout;
    if (!j->timed_out && job_lease_left(&j->job) > 0 && wanted > atomic_load(&j->job.deadline)) {
        atomic_store(&j->job.deadline, wanted);
        granted = true;
    }
    pthread_mutex_unlock(&l->mutex);
    return granted;
}

static bool command_is_stopping(void *arg)
{
    const command_job *j = arg;

    return atomic_load(&j->job.lane->worker->stopping);
}

const cb_host command_host = {
    .remaining_ms = command_remaining_ms,
    .extend = command_extend_timeout,
    .is_lost = command_is_lost,
    .is_stopping = command_is_stopping,
};

/* ---- running ---- */

/* When this worker first met the type, among those it does not know; forgotten after a grace
 * without it, so that an old meeting does not fail a new rollout. More types at once than there is
 * room for share the last place: made-up types must not push each other out, or none would ever
 * end. With the lane's mutex held. */
static int64_t unknown_since(command_lane *l, const char *command_type, int64_t now, int64_t grace)
{
    unknown_type *place = NULL, *shared = &l->unknown[UNKNOWN_TYPES - 1];

    for (size_t i = 0; i < UNKNOWN_TYPES; i++) {
        unknown_type *u = &l->unknown[i];
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

/* No handler here has this type. Perhaps a newer worker has: given back for a while, then
 * permanent. */
static void settle_unknown(command_lane *l, command_job *j)
{
    cb_worker *w = l->lane.worker;
    cb_settlement *s = &j->own.settlement;
    int64_t now = now_ns(), grace = seconds_to_ns(w->unknown_grace_seconds);
    double again = w->unknown_grace_seconds / 4;

    pthread_mutex_lock(&l->lane.mutex);
    int64_t since = unknown_since(l, j->command->command_type, now, grace);
    pthread_mutex_unlock(&l->lane.mutex);

    s->error_code = "HANDLER_NOT_FOUND";
    if (now - since < grace) {
        s->outcome = CB_INTERRUPTED;
        s->retry_seconds = again < 5 ? again : 5;
        return;
    }
    s->outcome = CB_PERMANENT;
    s->error_message = "no handler set of this domain has a handler for the command type";
}

static void command_run_handler(command_lane *l, command_job *j)
{
    cb_worker *w = l->lane.worker;
    cb_settlement *s = &j->own.settlement;
    cb_error e;

    if (j->type < 0) {
        settle_unknown(l, j);
        return;
    }
    if (!cb_context_open(j->command, &command_host, j, &j->context, &e)) {
        s->outcome = CB_INTERRUPTED;
        s->retry_seconds = 1;
        return;
    }
    cb_context_run(j->context, l->handlers.entries[j->type].run, w->result_limit, s);
    metrics_run(w->metrics, l->lane.index, j->type, (now_ns() - j->job.began) / 1000);

    double backoff = command_backoff(l, j->command->attempt);
    if (s->outcome == CB_TRANSIENT && s->retry_seconds < backoff)
        s->retry_seconds = backoff;
    /* One that gives everything back must not spin; an ending worker hands over at once. */
    if (s->outcome == CB_INTERRUPTED && !atomic_load(&w->stopping))
        s->retry_seconds = 1;
}

static void command_hand_over(command_lane *l, command_job *j)
{
    cb_worker *w = l->lane.worker;

    pthread_mutex_lock(&l->lane.mutex);
    j->job.stage = JOB_RETURNED;
    j->returned_at = now_ns();
    int64_t typical = atomic_load(&l->typical_ns);
    atomic_store(&l->typical_ns, typical + (j->returned_at - j->job.began - typical) / 8);
    watch_end(&j->job);
    bool late = j->timed_out, parked = j->timeout_pending;
    j->parked = parked;
    pthread_mutex_unlock(&l->lane.mutex);

    if (parked)
        return;
    bool with_effects = !late && j->context && j->own.settlement.outcome == CB_SUCCESS &&
                        cb_context_effects(j->context) > 0;
    if (with_effects)
        outcomes_put(&w->effecting, &j->own.outcome);
    else
        settler_put(&j->own.outcome);
}

void command_job_run(slot *s, job *base)
{
    command_lane *l = (command_lane *)s->lane;
    command_job *j = (command_job *)base;

    if (j->enters)
        command_run_handler(l, j);
    else
        j->own.settlement.outcome = CB_INTERRUPTED;
    command_hand_over(l, j);
}

void command_job_give_back(job *base)
{
    command_job *j = (command_job *)base;

    j->own.settlement.outcome = CB_INTERRUPTED;
    settler_put(&j->own.outcome);
}

/* ---- timeouts ---- */

/* Settled at once: the handler may take as long as it likes, but somebody else may try. */
void command_job_overdue(job *base)
{
    command_job *j = (command_job *)base;
    cb_settlement *s = &j->timeout.settlement;

    snprintf(j->timeout_text, sizeof j->timeout_text, "the handler did not return within %.0f s",
             ns_to_ms(atomic_load(&base->deadline) - base->began) / 1e3);
    s->outcome = CB_TRANSIENT;
    s->error_code = "HANDLER_TIMEOUT";
    s->error_message = j->timeout_text;
    s->still_running = true;
    s->retry_seconds = command_backoff((const command_lane *)base->lane, j->command->attempt);
    j->timed_out = j->timeout_pending = base->lease_ends = true;
    settler_put(&j->timeout.outcome);
}

bool command_job_is_hopeless(const job *j)
{
    return !((const command_job *)j)->timeout_pending;
}

void command_job_tell_stuck(const job *base, const char *step, bool stuck)
{
    const command_job *j = (const command_job *)base;

    (void)step, (void)stuck;
    emit(base->lane->worker, CB_LEVEL_ERROR, "handler.stuck", .domain = base->lane->name,
         .command_id = j->command->command_id.text, .command_type = j->command->command_type,
         .attempt = j->command->attempt, .took_ms = ns_to_ms(now_ns() - base->began),
         .hint = "it did not return within its timeout and kill-grace: this instance must end");
}

/* ---- what came of it ---- */

static cb_level level_of(const cb_settlement *s)
{
    return s->outcome == CB_SUCCESS || s->outcome == CB_INTERRUPTED ? CB_LEVEL_DEBUG
                                                                    : CB_LEVEL_INFO;
}

static const char *event_of(const command_job *j, const cb_settlement *s)
{
    static const char *const names[] = {
        [CB_SUCCESS] = "command.completed",    [CB_TRANSIENT] = "command.failed",
        [CB_PERMANENT] = "command.failed",     [CB_BUSINESS_RULE] = "command.declined",
        [CB_INTERRUPTED] = "command.released",
    };

    if (s == &j->timeout.settlement)
        return "command.timeout";
    if (s->verdict == CB_STALE || j->timed_out)
        return "command.late";
    return names[s->outcome];
}

static void command_tell(const command_job *j, const cb_settlement *s)
{
    cb_worker *w = j->job.lane->worker;
    const cb_command *c = j->command;
    bool timeout = s == &j->timeout.settlement;
    bool unusual = s->verdict == CB_STALE || timeout || j->timed_out;

    emit(w, unusual ? CB_LEVEL_WARN : level_of(s), event_of(j, s), .domain = c->domain,
         .command_id = c->command_id.text, .correlation_id = c->correlation_id.text,
         .command_type = c->command_type, .attempt = c->attempt, .max_attempts = c->max_attempts,
         .lease_no = c->lease_no, .outcome = cb_outcome_name(s->outcome),
         .verdict = cb_verdict_name(s->verdict), .error_code = s->error_code,
         .retry_seconds = s->outcome == CB_TRANSIENT ? s->retry_seconds : 0,
         .took_ms = ns_to_ms((timeout ? now_ns() : j->returned_at) - j->job.began));
}

bool command_outcome_settled(outcome *base)
{
    command_outcome *o = (command_outcome *)base;
    command_job *j = (command_job *)base->job;
    lane *l = j->job.lane;
    cb_worker *w = l->worker;
    const cb_settlement *s = &o->settlement;
    bool late = o == &j->own && j->timed_out;

    metrics_outcome(w->metrics, l->index, j->type, s->outcome, late ? CB_STALE : s->verdict,
                    s->error_code);
    command_tell(j, s);
    if (j->command->reply_to && w->moves_processes)
        claimer_hint_queue(&w->claims[PROCESSES], j->command->reply_to);
    if (o == &j->own) {
        lane_end(&j->job);
        return true;
    }
    pthread_mutex_lock(&l->mutex);
    bool parked = j->parked;
    j->timeout_pending = false;
    pthread_mutex_unlock(&l->mutex);
    if (parked)
        settler_put(&j->own.outcome);
    return false;
}

size_t command_outcome_bytes(const outcome *o)
{
    const cb_settlement *s = &((const command_outcome *)o)->settlement;

    return (s->result ? strlen(s->result) : 0) + (s->error_message ? strlen(s->error_message) : 0);
}

bool command_outcomes_settle(cb_worker *w, cb_db *db, void *items, size_t n, size_t *refused,
                             cb_error *e)
{
    return cb_settle_each(db, w->id, items, n, refused, e);
}

void command_outcome_tell_refused(const outcome *o, const cb_error *e)
{
    const lane *l = o->job->lane;

    emit(l->worker, CB_LEVEL_ERROR, "settle.refused", .domain = l->name,
         .command_id = ((const command_outcome *)o)->settlement.command_id.text,
         .error = e->message, .hint = e->hint, .error_code = e->sqlstate);
}
