/* From a claimed row to a run, and back to nothing. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json_tokener.h>

#include "engine.h"

enum {
    DEEPEST_JSON = 512 /* what the bus takes, and the arrays around it */
};

int64_t clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t run_now_ms(const cb_process *p)
{
    return p->row->now_ms + (clock_ms() - p->began_ms);
}

bool run_is_overdue(const cb_process *p)
{
    return p->row->deadline_ms > 0 && !p->row->deadline_spent && !p->deadline_spent &&
           run_now_ms(p) >= p->row->deadline_ms;
}

bool run_is_stopping(const cb_process *p)
{
    return p->host->is_stopping && p->host->is_stopping(p->host_arg);
}

static json_object *parse(const char *text)
{
    json_tokener *tokener = json_tokener_new_ex(DEEPEST_JSON);
    json_object *o = tokener ? json_tokener_parse_ex(tokener, text, (int)strlen(text) + 1) : NULL;

    if (tokener)
        json_tokener_free(tokener);
    return o;
}

/* NULL for what is none: json-c ends the program of who asks for its length. */
static json_object *parse_array(const char *text)
{
    OWNED(json_object) o = parse(text);

    return json_object_is_type(o, json_type_array) ? json_object_take(&o) : NULL;
}

static bool load_records(cb_process *p, cb_error *e)
{
    OWNED(json_object) history = parse_array(p->row->history);
    size_t n = history ? json_object_array_length(history) : 0;

    if (!history)
        return cb_fail(e, CB_INVALID_DATA, "its history does not parse");
    p->room = n + 16;
    p->records = calloc(p->room, sizeof *p->records);
    if (!p->records)
        return cb_fail(e, CB_MEMORY, "no memory for %zu records", n);
    for (size_t i = 0; i < n; i++) {
        bool fine = record_read(json_object_array_get_idx(history, i), (int)i + 1, &p->records[i]);
        p->n_records = i + 1; /* also a broken one is to be freed */
        if (!fine)
            return cb_fail(e, CB_INVALID_DATA, "record %zu of its history is not one of ours",
                           i + 1);
    }
    p->n_settled = n;
    return true;
}

static bool load_inbox(cb_process *p, const char *text, cb_error *e)
{
    p->inbox_json = text ? parse_array(text) : NULL;
    size_t n = p->inbox_json ? json_object_array_length(p->inbox_json) : 0;
    p->inbox = calloc(n + 1, sizeof *p->inbox);

    if (!p->inbox_json || !p->inbox)
        return cb_fail(e, CB_INVALID_DATA, "its inbox does not parse");
    for (; p->n_inbox < n; p->n_inbox++) {
        if (!inbox_read(json_object_array_get_idx(p->inbox_json, p->n_inbox),
                        &p->inbox[p->n_inbox]))
            return cb_fail(e, CB_INVALID_DATA, "item %zu of its inbox is not one of ours",
                           p->n_inbox + 1);
    }
    return true;
}

static bool load_leaving(cb_process *p, cb_error *e)
{
    OWNED(json_object) from = p->row->leaving ? parse(p->row->leaving) : NULL;
    bool fine = leaving_read(from, &p->leaving) && (from || !p->row->leaving);

    return fine || cb_fail(e, CB_INVALID_DATA, "where it leaves to does not parse");
}

/* Of what may not be loaded: where it leaves to stays, and an operator's decision is seen. */
static void load_decisions(cb_process *p)
{
    cb_error ignored;
    char *decisions = size_decisions(p->row->inbox);

    (void)!load_leaving(p, &ignored);
    (void)!load_inbox(p, decisions, &ignored);
    free(decisions);
}

/* Fills a struct from JSON text. */
static bool read_state(const cb_process *p, const char *text, void *to, json_object **unknown,
                       cb_error *e)
{
    OWNED(json_object) json = parse(text);

    return json ? cb_fields_read(p->type->type->state, to, json, unknown, e)
                : cb_fail(e, CB_INVALID_DATA, "its state does not parse");
}

/* The two structs come once a type and serve all runs of it. */
static bool make_states(cb_process *p, cb_error *e)
{
    const cb_fields *fields = p->type->type->state;

    p->state = cb_fields_new(fields);
    p->base = cb_fields_new(fields);
    return (p->state && p->base) || cb_fail(e, CB_MEMORY, "no memory for its state");
}

bool run_latest_state(cb_process *p, cb_error *e)
{
    json_object_put(p->unknown);
    p->unknown = NULL;
    if (!read_state(p, p->row->state, p->state, &p->unknown, e))
        return false;
    return cb_fields_copy(p->type->type->state, p->base, p->state) ||
           cb_fail(e, CB_MEMORY, "no memory for its state");
}

bool run_first_state(cb_process *p, cb_error *e)
{
    return read_state(p, p->row->initial_state, p->state, NULL, e);
}

bool run_load(cb_process *p, cb_error *e)
{
    p->status = process_status_named(p->row->status);
    p->phase = name_index(p->row->phase, process_phase_names, PHASES) == PHASE_COMPENSATING
                   ? PHASE_COMPENSATING
                   : PHASE_FORWARD;
    p->settle_no = p->row->settle_no;
    p->commands = json_object_new_array();
    p->cancels = json_object_new_array();
    p->events = json_object_new_array();
    if (!p->commands || !p->cancels || !p->events)
        return cb_fail(e, CB_MEMORY, "no memory for a run");
    if (!record_set_text(&p->step, p->row->current_step) ||
        !record_set_text(&p->wait, p->row->current_wait) ||
        !record_set_text(&p->error_code, p->row->error_code) ||
        !record_set_text(&p->error_message, p->row->error_message))
        return cb_fail(e, CB_MEMORY, "no memory for a run");
    if (!size_is_loadable(p->row, e)) {
        load_decisions(p);
        return false;
    }
    size_begin(p);
    /* These first, and both: a decision about what cannot be read must be found and answered, and where it
     * leaves to must stay. */
    cb_error second;
    bool inbox = load_inbox(p, p->row->inbox, e), leaves = load_leaving(p, inbox ? e : &second);
    return inbox && leaves && make_states(p, e) && load_records(p, e) && run_latest_state(p, e);
}

static void free_texts(cb_process *p)
{
    free(p->step);
    free(p->wait);
    free(p->error_code);
    free(p->error_message);
    free(p->stray);
    free(p->item);
}

void run_clear(cb_process *p)
{
    const cb_process_types *types = p->types;

    if (p->type) {
        cb_fields_free(p->type->type->state, p->state);
        cb_fields_free(p->type->type->state, p->base);
    }
    for (size_t i = 0; i < p->n_records; i++)
        record_done(&p->records[i]);
    free(p->records);
    free(p->inbox);
    free(p->owed);
    names_done(&p->called);
    json_object_put(p->unknown);
    json_object_put(p->inbox_json);
    leaving_done(&p->leaving);
    json_object_put(p->failure);
    json_object_put(p->commands);
    json_object_put(p->cancels);
    json_object_put(p->events);
    free_texts(p);
    *p = (cb_process){ .types = types };
}

record *run_append(cb_process *p, record_kind kind, const char *name)
{
    if (p->n_records == p->room) {
        record *more = realloc(p->records, 2 * p->room * sizeof *more);
        if (!more)
            return NULL;
        p->records = more;
        p->room *= 2;
    }
    record *r = &p->records[p->n_records];
    *r = (record){ .ordinal = (int)p->n_records + 1, .kind = kind, .took_ms = -1, .dirty = true };
    if (!record_set_text(&r->name, name))
        return NULL;
    p->n_records++;
    return r;
}

record *run_at(cb_process *p, int ordinal)
{
    return &p->records[ordinal - 1];
}

static bool is_call(const record *r)
{
    return r->kind != KIND_RESPONSE && r->kind != KIND_OPERATOR && r->kind != KIND_COMPENSATION;
}

record *run_open_record(cb_process *p)
{
    for (size_t i = p->n_records; i > 0; i--) {
        record *r = &p->records[i - 1];
        if (is_call(r))
            return record_is_open(r) ? r : NULL;
    }
    return NULL;
}
