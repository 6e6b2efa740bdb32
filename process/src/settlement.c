/* What a run came to, as settle_processes takes it. */
#include <stdlib.h>
#include <string.h>

#include "json_build.h"
#include "process_run.h"

static const char *const wake_names[] = { "NEVER", "TIMERS", "NOW" };

/* Adds what the code does not know; in nested structs beside what it does. */
static void add_unknown(json_object *to, json_object *unknown)
{
    json_object_object_foreach(unknown, key, value)
    {
        json_object *known = NULL;
        if (json_object_object_get_ex(to, key, &known))
            add_unknown(known, value);
        else
            json_object_object_add(to, key, json_object_get(value));
    }
}

static json_object *state_json(const cb_process *p)
{
    json_object *o = cb_fields_write(run_type(p)->state, p->state.now);

    if (o && p->state.unknown)
        add_unknown(o, p->state.unknown);
    return o;
}

/* One that cannot be written stays as it was. */
static void put_state(json_object *o, cb_process *p)
{
    json_object *state = state_json(p);

    if (state)
        put(o, "state", state);
    else
        run_stray(p, "the code left a state that cannot be kept");
}

/* Whether what it waits for is the reply to a command. */
static bool awaits_reply(const cb_process *p)
{
    for (size_t i = p->outcome.wait ? p->history.n : 0; i > 0; i--) {
        const record *r = &p->history.records[i - 1];
        if (r->status == RECORD_WAITING && strcmp(r->name, p->outcome.wait) == 0)
            return r->command_id.text[0] != 0;
    }
    return false;
}

/* What is said with every settle; what is left out is NULL there. */
static void put_row(json_object *o, cb_process *p)
{
    put_text(o, "process_id", p->claim.row->process_id.text);
    put_int(o, "lease_no", p->claim.row->lease_no);
    put_int(o, "settle_no", p->outcome.settle_no);
    put_int(o, "version", p->claim.type ? type_version(run_type(p)) : 0);
    put_text(o, "status", process_status_names[p->outcome.status]);
    put_text(o, "phase", process_phase_names[p->outcome.phase]);
    put_text(o, "step", p->outcome.step);
    put_text(o, "wait", p->outcome.wait);
    if (awaits_reply(p))
        put(o, "awaits_reply", json_object_new_boolean(true));
    put_text(o, "error_code", p->outcome.error_code);
    put_text(o, "error_message", p->outcome.error_message);
    OWNED(json_object) leaves = leaving_write(&p->leaving);
    put_shared(o, "leaving", leaves);
    put(o, "deadline_spent", json_object_new_boolean(p->outcome.deadline_spent));
    put_int(o, "seen", p->claim.row->inbox_seq);
    if (p->state.changed)
        put_state(o, p);
}

static void put_timers(json_object *o, const cb_process *p)
{
    put_text(o, "wake", wake_names[p->outcome.timers.wake]);
    if (p->outcome.timers.retry_ms > 0)
        put_int(o, "retry_ms", p->outcome.timers.retry_ms);
    else if (p->outcome.timers.retry_at > 0)
        put_int(o, "retry_at_ms", p->outcome.timers.retry_at);
    if (p->outcome.timers.timeout_ms > 0)
        put_int(o, "timeout_ms", p->outcome.timers.timeout_ms);
    else if (p->outcome.timers.timeout_at > 0)
        put_int(o, "timeout_at_ms", p->outcome.timers.timeout_at);
}

static json_object *dirty_records(const cb_process *p)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; list && i < p->history.n; i++) {
        if (p->history.records[i].dirty)
            json_object_array_add(list, record_write(&p->history.records[i]));
    }
    return list;
}

static json_object *consumed_items(const cb_process *p)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; list && i < p->inbox.n; i++) {
        if (p->inbox.items[i].consumed)
            json_object_array_add(list, json_object_new_int(p->inbox.items[i].seq));
    }
    return list;
}

static void put_list(json_object *o, const char *key, json_object *list_adopted)
{
    if (json_object_array_length(list_adopted) > 0)
        put(o, key, list_adopted);
    else
        json_object_put(list_adopted);
}

static bool put_lists(json_object *o, const cb_process *p)
{
    json_object *records = dirty_records(p), *consumed = consumed_items(p);

    if (records)
        put_list(o, "records", records);
    if (consumed)
        put_list(o, "consumed", consumed);
    put_list(o, "commands", json_object_get(p->outcome.commands));
    put_list(o, "cancels", json_object_get(p->outcome.cancels));
    put_list(o, "events", json_object_get(p->outcome.events));
    return records && consumed;
}

/* The caller's, or longer if the step that begins may take longer and nobody renews it
 * meanwhile. */
static double lease_seconds(const cb_process *p)
{
    double least = p->claim.host->lease_seconds;

    return p->outcome.step_seconds > least && !p->claim.host->renews ? p->outcome.step_seconds
                                                                     : least;
}

bool settlement_make(cb_process *p, bool checkpoint, cb_process_settlement *ret)
{
    OWNED(json_object) o = json_object_new_object();
    const char *text = NULL;

    if (!o)
        return false;
    put_row(o, p);
    put_timers(o, p);
    if (checkpoint)
        put(o, "checkpoint", json_object_new_boolean(true));
    if (checkpoint && p->claim.host->lease_seconds > 0)
        put(o, "vt_seconds", json_object_new_double(lease_seconds(p)));
    if (put_lists(o, p))
        text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
    free(p->outcome.item);
    p->outcome.item = text ? strdup(text) : NULL;
    *ret =
        (cb_process_settlement){ .process_id = p->claim.row->process_id, .item = p->outcome.item };
    return p->outcome.item != NULL;
}

/* What was in the settlement is known to the database now. */
static void settled(cb_process *p)
{
    p->outcome.settle_no++;
    p->history.n_settled = p->history.n;
    p->state.changed = false;
    for (size_t i = 0; i < p->history.n; i++) {
        p->history.records[i].dirty = false;
        p->history.records[i].timeout_ms = 0;
        p->history.records[i].untimed = false;
    }
    size_t left = 0;
    for (size_t i = 0; i < p->inbox.n; i++) {
        if (!p->inbox.items[i].consumed)
            p->inbox.items[left++] = p->inbox.items[i];
    }
    p->inbox.n = left;
    json_object_array_del_idx(p->outcome.commands, 0,
                              json_object_array_length(p->outcome.commands));
    json_object_array_del_idx(p->outcome.cancels, 0, json_object_array_length(p->outcome.cancels));
    json_object_array_del_idx(p->outcome.events, 0, json_object_array_length(p->outcome.events));
}

bool run_checkpoint(cb_process *p)
{
    cb_process_settlement settlement;

    if (!settlement_make(p, true, &settlement) ||
        !p->claim.host->checkpoint(p->claim.host_arg, &settlement)) {
        p->replay.left = LEFT_LOST;
        return false;
    }
    settled(p);
    return true;
}
