/* The settling thread: a group commit. While one flush is on the wire the next one gathers. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "engine.h"

enum {
    FLUSH_ITEMS = 1000,
    FLUSH_BYTES = 8 * 1024 * 1024,
    GATHER_MOMENTS = 5,
};
static const int64_t quick_ns = 100000;

static cb_level level_of(const cb_settlement *s)
{
    return s->outcome == CB_SUCCESS || s->outcome == CB_INTERRUPTED ? CB_LEVEL_DEBUG
                                                                    : CB_LEVEL_INFO;
}

static const char *event_of(const job *j, const cb_settlement *s)
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

static void tell(cb_worker *w, job *j, const cb_settlement *s)
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
         .took_ms = ns_to_ms((timeout ? now_ns() : j->returned_at) - j->started_at));
}

void outcome_settled(cb_worker *w, outcome *o)
{
    job *j = o->job;
    served *d = j->domain;
    const cb_settlement *s = &o->settlement;
    bool late = o == &j->own && j->timed_out;

    metrics_outcome(w->metrics, d->index, j->type, s->outcome, late ? CB_STALE : s->verdict,
                    s->error_code);
    tell(w, j, s);
    if (o == &j->own) {
        served_end(d, j);
        return;
    }
    pthread_mutex_lock(&d->mutex);
    bool parked = j->parked;
    j->timeout_pending = false;
    pthread_mutex_unlock(&d->mutex);
    if (parked)
        outcomes_put(&w->settling, &j->own);
}

/* The same call may succeed later. A statement that was cancelled is none of those: it took too long for
 * somebody's statement_timeout, and fewer items take less. */
static bool is_passing(const cb_error *e)
{
    return e->code == CB_LOST || (e->code == CB_AGAIN && strcmp(e->sqlstate, "57014") != 0);
}

/* One attempt at n items. */
static bool settle_once(cb_worker *w, cb_settlement *items, size_t n, cb_error *e)
{
    db_link *link = &w->links[LINK_SETTLE];
    size_t refused = 0;
    int64_t from = now_ns();

    if (!cb_settle_each(link->db, w->id, items, n, &refused, e))
        return false;
    link_worked(link);
    metrics_settle(w->metrics, n, (now_ns() - from) / 1000);
    metrics_refused(w->metrics, refused);
    return true;
}

/* No verdict: the database does not take the outcome in any form. */
static const cb_verdict refused_verdict = (cb_verdict)(CB_STALE + 1);

/* Once at first and then once a minute: it is brought again every second. */
static void tell_refused(cb_worker *w, outcome *o, const cb_error *e)
{
    if (o->tries++ % 60 == 0)
        emit(w, CB_LEVEL_ERROR, "settle.refused", .domain = o->settlement.domain,
             .command_id = o->settlement.command_id.text, .error = e->message, .hint = e->hint,
             .error_code = e->sqlstate);
}

/* The database refuses the whole: a domain that is gone, a right that was taken away. Whoever can be
 * settled alone is; the others are kept, for their handlers have done what they did. */
static bool settle_alone(cb_worker *w, outcome **batch, cb_settlement *items, size_t n, cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (settle_once(w, &items[i], 1, e))
            continue;
        if (is_passing(e))
            return false;
        items[i].verdict = refused_verdict;
        tell_refused(w, batch[i], e);
    }
    return true;
}

/* Sends the batch until it has verdicts, whatever happens to the connection. False: the worker ends. */
static bool settle_all(cb_worker *w, outcome **batch, cb_settlement *items, size_t n)
{
    db_link *link = &w->links[LINK_SETTLE];
    cb_error e = { 0 };

    while (link_ready(link, NULL)) {
        if (settle_once(w, items, n, &e) ||
            (!is_passing(&e) && settle_alone(w, batch, items, n, &e)))
            return true;
        link_failed(link, &e, "settle");
        if (atomic_load(&w->ending))
            break;
    }
    return false;
}

/* Returns how many are to be brought again. */
static size_t flush(cb_worker *w, outcome **batch, cb_settlement *items, size_t n)
{
    size_t busy = 0;

    for (size_t i = 0; i < n; i++)
        items[i] = batch[i]->settlement;
    if (!settle_all(w, batch, items, n))
        return n;
    for (size_t i = 0; i < n; i++) {
        outcome *o = batch[i];
        o->settlement.verdict = items[i].verdict;
        if (items[i].verdict == refused_verdict) {
            outcomes_put(&w->refused, o);
        } else if (items[i].verdict == CB_BUSY) {
            outcomes_put(&w->settling, o);
            busy++;
        } else {
            outcome_settled(w, o);
        }
    }
    claim_freed(w);
    if (atomic_load(&w->stopping))
        worker_changed(w);
    /* Somebody holds those rows: not for long, and nobody is helped by asking in a circle. */
    if (busy == n)
        worker_pause(w, 0.005);
    return busy;
}

/* Jobs are ready and handlers are quick: more outcomes come within microseconds. A flush of one now
 * would keep the others waiting for its commit. */
static bool is_bursting(cb_worker *w)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        served *d = &w->domains[i];
        if (atomic_load(&d->ready) > 0 && atomic_load(&d->typical_ns) < quick_ns)
            return true;
    }
    return false;
}

static void let_gather(cb_worker *w)
{
    static const struct timespec moment = { .tv_nsec = 20000 };

    for (int i = 0; i < GATHER_MOMENTS && is_bursting(w); i++)
        nanosleep(&moment, NULL);
}

void *settle_thread(void *worker)
{
    cb_worker *w = worker;
    outcome **batch = calloc(FLUSH_ITEMS, sizeof *batch);
    cb_settlement *items = calloc(FLUSH_ITEMS, sizeof *items);
    size_t n;

    while (batch && items && outcomes_wait(&w->settling)) {
        let_gather(w);
        n = outcomes_take(&w->settling, batch, FLUSH_ITEMS, FLUSH_BYTES);
        /* At the end once more for what the last handlers came to, but only once. */
        if (flush(w, batch, items, n) > 0 && atomic_load(&w->ending))
            break;
    }
    free(items);
    free(batch);
    return NULL;
}
