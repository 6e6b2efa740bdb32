/* Runs: one claimed process after the other, from its row to a run and back to nothing. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json_tokener.h>

#include "process_run.h"

struct cb_run {
    cb_process process;
};

enum {
    DEEPEST_JSON = 512 /* what the bus takes, and the arrays around it */
};

/* ---- time, and what the host knows ---- */

int64_t clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t run_now_ms(const cb_process *p)
{
    return p->claim.row->now_ms + (clock_ms() - p->claim.began_ms);
}

bool run_is_overdue(const cb_process *p)
{
    return p->claim.row->deadline_ms > 0 && !p->claim.row->deadline_spent &&
           !p->outcome.deadline_spent && run_now_ms(p) >= p->claim.row->deadline_ms;
}

bool run_is_lost(const cb_process *p)
{
    return p->claim.host->is_lost && p->claim.host->is_lost(p->claim.host_arg);
}

bool run_is_stopping(const cb_process *p)
{
    return p->claim.host->is_stopping && p->claim.host->is_stopping(p->claim.host_arg);
}

static json_object *parse(const char *text)
{
    json_tokener *tokener = json_tokener_new_ex(DEEPEST_JSON);
    json_object *o = tokener ? json_tokener_parse_ex(tokener, text, (int)strlen(text) + 1) : NULL;

    if (tokener)
        json_tokener_free(tokener);
    return o;
}

/* NULL for what is none: json-c ends the program of whoever asks for its length. */
static json_object *parse_array(const char *text)
{
    OWNED(json_object) o = parse(text);

    return json_object_is_type(o, json_type_array) ? json_object_take(&o) : NULL;
}

/* ---- what the row has ---- */

static bool load_records(cb_process *p, cb_error *e)
{
    OWNED(json_object) history = parse_array(p->claim.row->history);
    size_t n = history ? json_object_array_length(history) : 0;

    if (!history)
        return cb_fail(e, CB_INVALID_DATA, "its history does not parse");
    p->history.room = n + 16;
    p->history.records = calloc(p->history.room, sizeof *p->history.records);
    if (!p->history.records)
        return cb_fail(e, CB_MEMORY, "out of memory for %zu records", n);
    for (size_t i = 0; i < n; i++) {
        bool fine =
            record_read(json_object_array_get_idx(history, i), (int)i + 1, &p->history.records[i]);
        p->history.n = i + 1; /* also a broken one is to be freed */
        if (!fine)
            return cb_fail(e, CB_INVALID_DATA, "record %zu of its history is invalid", i + 1);
    }
    p->history.n_settled = n;
    return true;
}

static bool load_inbox(cb_process *p, const char *text, cb_error *e)
{
    p->inbox.json = text ? parse_array(text) : NULL;
    size_t n = p->inbox.json ? json_object_array_length(p->inbox.json) : 0;
    p->inbox.items = calloc(n + 1, sizeof *p->inbox.items);

    if (!p->inbox.json || !p->inbox.items)
        return cb_fail(e, CB_INVALID_DATA, "its inbox does not parse");
    for (; p->inbox.n < n; p->inbox.n++) {
        if (!inbox_read(json_object_array_get_idx(p->inbox.json, p->inbox.n),
                        &p->inbox.items[p->inbox.n]))
            return cb_fail(e, CB_INVALID_DATA, "item %zu of its inbox is invalid", p->inbox.n + 1);
    }
    return true;
}

static bool load_leaving(cb_process *p, cb_error *e)
{
    OWNED(json_object) from = p->claim.row->leaving ? parse(p->claim.row->leaving) : NULL;
    bool fine = leaving_read(from, &p->leaving) && (from || !p->claim.row->leaving);

    return fine || cb_fail(e, CB_INVALID_DATA, "its 'leaving' does not parse");
}

/* Of what may not be loaded: where it leaves to stays, and an operator's decision is seen. */
static void load_decisions(cb_process *p)
{
    cb_error ignored;
    char *decisions = size_decisions(p->claim.row->inbox);

    (void)!load_leaving(p, &ignored);
    (void)!load_inbox(p, decisions, &ignored);
    free(decisions);
}

/* Fills a struct from JSON text. */
static bool read_state(const cb_process *p, const char *text, void *to, json_object **unknown,
                       cb_error *e)
{
    OWNED(json_object) json = parse(text);

    return json ? cb_fields_read(run_type(p)->state, to, json, unknown, e)
                : cb_fail(e, CB_INVALID_DATA, "its state does not parse");
}

/* The two structs come once a type and serve all runs of it. */
static bool make_states(cb_process *p, cb_error *e)
{
    const cb_fields *fields = run_type(p)->state;

    p->state.now = cb_fields_new(fields);
    p->state.recorded = cb_fields_new(fields);
    return (p->state.now && p->state.recorded) ||
           cb_fail(e, CB_MEMORY, "out of memory for its state");
}

bool run_latest_state(cb_process *p, cb_error *e)
{
    json_object_put(p->state.unknown);
    p->state.unknown = NULL;
    if (!read_state(p, p->claim.row->state, p->state.now, &p->state.unknown, e))
        return false;
    return cb_fields_copy(run_type(p)->state, p->state.recorded, p->state.now) ||
           cb_fail(e, CB_MEMORY, "out of memory for its state");
}

bool run_first_state(cb_process *p, cb_error *e)
{
    return read_state(p, p->claim.row->initial_state, p->state.now, NULL, e);
}

/* False with a reason when the row cannot be understood. */
static bool run_load(cb_process *p, cb_error *e)
{
    p->outcome.status = process_status_named(p->claim.row->status);
    p->outcome.phase =
        name_index(p->claim.row->phase, process_phase_names, PHASES) == PHASE_COMPENSATING
            ? PHASE_COMPENSATING
            : PHASE_FORWARD;
    p->outcome.settle_no = p->claim.row->settle_no;
    p->outcome.cancels = json_object_new_array();
    p->outcome.events = json_object_new_array();
    if (!p->outcome.cancels || !p->outcome.events)
        return cb_fail(e, CB_MEMORY, "out of memory for a run");
    if (!record_set_text(&p->outcome.step, p->claim.row->current_step) ||
        !record_set_text(&p->outcome.wait, p->claim.row->current_wait) ||
        !record_set_text(&p->outcome.error_code, p->claim.row->error_code) ||
        !record_set_text(&p->outcome.error_message, p->claim.row->error_message))
        return cb_fail(e, CB_MEMORY, "out of memory for a run");
    if (!size_is_loadable(p->claim.row, e)) {
        load_decisions(p);
        return false;
    }
    size_begin(p);
    /* These first, and both: a decision about what cannot be read must be found and answered, and
     * where it leaves to must stay. */
    cb_error second;
    bool inbox = load_inbox(p, p->claim.row->inbox, e),
         leaves = load_leaving(p, inbox ? e : &second);
    return inbox && leaves && make_states(p, e) && load_records(p, e) && run_latest_state(p, e);
}

/* Back to nothing; but what is known of misuse is kept. */
static void run_clear(cb_process *p)
{
    if (p->claim.type) {
        cb_fields_free(run_type(p)->state, p->state.now);
        cb_fields_free(run_type(p)->state, p->state.recorded);
    }
    json_object_put(p->state.unknown);
    for (size_t i = 0; i < p->history.n; i++)
        record_done(&p->history.records[i]);
    free(p->history.records);
    free(p->inbox.items);
    json_object_put(p->inbox.json);
    free(p->replay.compensations.items);
    free(p->replay.called.slots);
    json_object_put(p->replay.failure);
    leaving_done(&p->leaving);
    outcome_done(&p->outcome);
    p->claim = (run_claim){ 0 };
    p->state = (run_state){ 0 };
    p->size = (run_size){ 0 };
    p->history = (run_history){ 0 };
    p->inbox = (run_inbox){ 0 };
    p->replay = (run_replay){ 0 };
    p->figures = (run_figures){ 0 };
}

/* ---- records ---- */

record *run_append(cb_process *p, record_kind kind, const char *name)
{
    if (p->history.n == p->history.room) {
        record *more = realloc(p->history.records, 2 * p->history.room * sizeof *more);
        if (!more)
            return NULL;
        p->history.records = more;
        p->history.room *= 2;
    }
    record *r = &p->history.records[p->history.n];
    *r = (record){ .ordinal = (int)p->history.n + 1, .kind = kind, .took_ms = -1, .dirty = true };
    if (!record_set_text(&r->name, name))
        return NULL;
    p->history.n++;
    return r;
}

record *run_at(cb_process *p, int ordinal)
{
    return &p->history.records[ordinal - 1];
}

record *run_waiting_record(cb_process *p)
{
    for (size_t i = p->history.n; i > 0; i--) {
        record *r = &p->history.records[i - 1];
        if (r->status == RECORD_WAITING && r->command_id.text[0])
            return r;
    }
    return NULL;
}

static bool is_call(const record *r)
{
    return r->kind != KIND_RESPONSE && r->kind != KIND_OPERATOR && r->kind != KIND_COMPENSATION;
}

record *run_open_record(cb_process *p)
{
    for (size_t i = p->history.n; i > 0; i--) {
        record *r = &p->history.records[i - 1];
        if (is_call(r))
            return record_is_open(r) ? r : NULL;
    }
    return NULL;
}

/* ---- runs ---- */

bool cb_run_open(const cb_process_types *types, cb_run **ret, cb_error *e)
{
    cb_run *run = calloc(1, sizeof *run);

    if (!run)
        return cb_fail(e, CB_MEMORY, "out of memory for a run");
    run->process.types = types;
    *ret = run;
    return true;
}

void cb_run_free(cb_run *run)
{
    if (!run)
        return;
    run_clear(&run->process);
    free(run->process.guard.stray);
    free(run);
}

static bool begin(cb_process *p, const cb_process_row *row, const cb_run_host *host, void *arg,
                  cb_error *e)
{
    run_clear(p);
    if (p->guard.stray_told) {
        free(p->guard.stray);
        p->guard.stray = NULL;
    }
    p->guard.stray_told = false;
    p->guard.thread = pthread_self();
    p->claim = (run_claim){ .type = types_find(p->types, row->process_type),
                            .row = row,
                            .host = host,
                            .host_arg = arg,
                            .began_ms = clock_ms() };
    if (!p->claim.type)
        return cb_fail(e, CB_UNKNOWN_PROCESS_TYPE, "this program has no process type '%s'",
                       row->process_type);
    return true;
}

/* What the code of this run, or of one before it, did that it must not. */
static const char *misuse(cb_process *p)
{
    if (p->guard.stray)
        return p->guard.stray;
    return atomic_load(&p->guard.from_abroad)
               ? "a call was made from another thread than the one that execute() runs on"
               : NULL;
}

void cb_run_process(cb_run *run, const cb_process_row *row, const cb_run_host *host, void *arg,
                    cb_run_result *result)
{
    cb_process *p = &run->process;
    cb_error e = { 0 };

    *result = (cb_run_result){ .lost = true };
    if (!begin(p, row, host, arg, &e))
        return;
    if (!run_load(p, &e)) {
        p->claim.unreadable = e.message;
        p->claim.unreadable_code =
            e.code == CB_PAYLOAD_TOO_LARGE ? PARKED_PROCESS_TOO_LARGE : PARKED_PERMANENT_FAILURE;
    }
    run_decide(p);
    if (p->replay.left != LEFT_LOST)
        result->lost = !settlement_make(p, false, &result->settlement);
    result->status = process_status_names[p->outcome.status];
    result->error_code = p->outcome.error_code;
    result->error_message = p->outcome.error_message;
    result->steps = p->figures.steps;
    result->replayed = p->figures.replayed;
    result->sent = p->figures.sent;
    result->sent_to = p->figures.sent_to;
    result->misuse = misuse(p);
    p->guard.stray_told = true;
    atomic_store(&p->guard.from_abroad, false);
    p->claim.row = NULL; /* borrowed for the call */
    p->claim.unreadable = NULL;
}

cb_process_item *cb_run_take_item(cb_run *run)
{
    return cb_process_item_take(&run->process.outcome.item);
}

void cb_run_forget(cb_run *run)
{
    run_clear(&run->process);
}

bool cb_run_replay(cb_run *run, const cb_process_row *row, cb_error *e)
{
    static const cb_run_host nobody = { 0 };
    cb_process *p = &run->process;

    if (!begin(p, row, &nobody, NULL, e) || !run_load(p, e))
        return false;
    run_execute(p, CHECK);
    bool agrees = p->replay.left != LEFT_PARKED && compensations_agree(p);
    p->claim.row = NULL;
    if (agrees)
        return true;
    cb_fail(e, CB_OK, "%s: %s", p->outcome.error_code, p->outcome.error_message);
    return false;
}
