/* What the settler does with outcomes of commands. */
#include "settle.h"

#include "clock.h"
#include "engine.h"
#include "processes.h"

static const int64_t quick_ns = 100000;

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

static void tell(cb_worker *w, command_job *j, const cb_settlement *s)
{
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

void outcome_settled(cb_worker *w, outcome *o)
{
    command_job *j = o->job;
    lane *l = j->job.lane;
    const cb_settlement *s = &o->settlement;
    bool late = o == &j->own && j->timed_out;

    metrics_outcome(w->metrics, l->index, j->type, s->outcome, late ? CB_STALE : s->verdict,
                    s->error_code);
    tell(w, j, s);
    if (j->command->reply_to && w->moves_processes)
        process_hint_reply(w, j->command->reply_to);
    if (o == &j->own) {
        lane_end(&j->job);
        return;
    }
    pthread_mutex_lock(&l->mutex);
    bool parked = j->parked;
    j->timeout_pending = false;
    pthread_mutex_unlock(&l->mutex);
    if (parked)
        settler_put(&w->settling, &j->own.queued);
}

static bool write_all(cb_worker *w, cb_db *db, void *items, size_t n, size_t *refused, cb_error *e)
{
    return cb_settle_each(db, w->id, items, n, refused, e);
}

static void settled(cb_worker *w, queued *o)
{
    outcome_settled(w, (outcome *)o);
}

/* Once at first and then once a minute: it is brought again every second. */
static void tell_refused(cb_worker *w, queued *q, const cb_error *e)
{
    outcome *o = (outcome *)q;

    if (o->tries++ % 60 == 0)
        emit(w, CB_LEVEL_ERROR, "settle.refused", .domain = o->settlement.domain,
             .command_id = o->settlement.command_id.text, .error = e->message, .hint = e->hint,
             .error_code = e->sqlstate);
}

static void flushed(cb_worker *w)
{
    claimer_freed(&w->claims);
}

/* Jobs are ready and handlers are quick. */
static bool is_bursting(cb_worker *w)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        command_lane *l = &w->domains[i].commands;
        if (atomic_load(&l->lane.ready) > 0 && atomic_load(&l->typical_ns) < quick_ns)
            return true;
    }
    return false;
}

const settle_kind command_settling = {
    .item_size = sizeof(cb_settlement),
    .item_at = offsetof(outcome, settlement),
    .verdict_at = offsetof(cb_settlement, verdict),
    .write = write_all,
    .settled = settled,
    .tell_refused = tell_refused,
    .flushed = flushed,
    .is_bursting = is_bursting,
    .bytes = outcome_bytes,
};
