/* What a run came to, as an item to be settled. */
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

/* The caller's, or longer if the step that begins may take longer and nobody renews it
 * meanwhile. */
static double lease_seconds(const cb_process *p)
{
    double least = p->claim.host->lease_seconds;

    return p->outcome.step_seconds > least && !p->claim.host->renews ? p->outcome.step_seconds
                                                                     : least;
}

static const char *plain_unless_empty(json_object *list, bool *whole)
{
    return json_object_array_length(list) > 0 ? json_plain(list, whole) : NULL;
}

/* The row. A state that cannot be written stays as it was. */
static cb_process_item *new_item(cb_process *p, bool checkpoint, bool *whole)
{
    const run_timers *timers = &p->outcome.timers;
    OWNED(json_object) state = p->state.changed ? state_json(p) : NULL;
    OWNED(json_object) leaves = leaving_write(&p->leaving);

    if (p->state.changed && !state)
        run_stray(p, "the code left a state that cannot be kept");
    if (!leaves && (p->leaving.way != LEAVING_NOT || p->leaving.unreadable))
        *whole = false;
    return cb_process_item_new(&(cb_process_outcome){
        .process_id = p->claim.row->process_id,
        .lease_no = p->claim.row->lease_no,
        .settle_no = p->outcome.settle_no,
        .checkpoint = checkpoint,
        .vt_seconds = checkpoint && p->claim.host->lease_seconds > 0 ? lease_seconds(p) : 0,
        .version = p->claim.type ? type_version(run_type(p)) : 0,
        .status = process_status_names[p->outcome.status],
        .phase = process_phase_names[p->outcome.phase],
        .step = p->outcome.step,
        .wait = p->outcome.wait,
        .awaits_reply = awaits_reply(p),
        .state = json_plain(state, whole),
        .error_code = p->outcome.error_code,
        .error_message = p->outcome.error_message,
        .leaving = json_plain(leaves, whole),
        .deadline_spent = p->outcome.deadline_spent,
        .seen = p->claim.row->inbox_seq,
        .retry_ms = timers->retry_ms > 0 ? (double)timers->retry_ms : 0,
        .retry_at_ms = timers->retry_ms <= 0 && timers->retry_at > 0 ? (double)timers->retry_at : 0,
        .timeout_ms = timers->timeout_ms > 0 ? (double)timers->timeout_ms : 0,
        .timeout_at_ms =
            timers->timeout_ms <= 0 && timers->timeout_at > 0 ? (double)timers->timeout_at : 0,
        .wake = wake_names[timers->wake],
        .cancels = plain_unless_empty(p->outcome.cancels, whole),
        .events = plain_unless_empty(p->outcome.events, whole),
    });
}

static void put_commands(cb_process_item *item, const run_commands *commands, bool *whole)
{
    for (size_t i = 0; i < commands->n; i++) {
        const run_command *c = &commands->items[i];
        cb_process_item_send(item, &(cb_process_command){ .domain = c->domain,
                                                          .command_type = c->command_type,
                                                          .data = json_plain(c->data, whole),
                                                          .command_id = c->id.text,
                                                          .without_reply = c->without_reply,
                                                          .max_attempts = c->max_attempts,
                                                          .timeout_seconds = c->timeout_seconds });
    }
}

bool settlement_make(cb_process *p, bool checkpoint, cb_process_settlement *ret)
{
    bool whole = true;
    OWNED(cb_process_item) item = new_item(p, checkpoint, &whole);

    if (!item)
        return false;
    for (size_t i = 0; i < p->history.n; i++) {
        if (p->history.records[i].dirty)
            record_put(&p->history.records[i], i >= p->history.n_settled, item, &whole);
    }
    for (size_t i = 0; i < p->inbox.n; i++) {
        if (p->inbox.items[i].consumed)
            cb_process_item_consume(item, p->inbox.items[i].seq);
    }
    put_commands(item, &p->outcome.commands, &whole);
    if (!whole || !cb_process_item_is_whole(item))
        return false;
    cb_process_item_free(p->outcome.item);
    p->outcome.item = cb_process_item_take(&item);
    *ret =
        (cb_process_settlement){ .process_id = p->claim.row->process_id, .item = p->outcome.item };
    return true;
}

/* What was in the settlement is known to the database now. */
static void settled(cb_process *p)
{
    p->outcome.settle_no++;
    p->history.n_settled = p->history.n;
    p->state.changed = false;
    for (size_t i = 0; i < p->history.n; i++)
        record_settled(&p->history.records[i]);
    size_t left = 0;
    for (size_t i = 0; i < p->inbox.n; i++) {
        if (!p->inbox.items[i].consumed)
            p->inbox.items[left++] = p->inbox.items[i];
    }
    p->inbox.n = left;
    commands_drop(&p->outcome.commands, 0);
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
