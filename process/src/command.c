/* Commands of records: sent with the next settle, and what comes back for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_build.h"
#include "process_run.h"

/* The reason of a cancel that the runtime itself asked for: no decision of anybody's. */
static const char our_cancel[] = "commandbus: its process does not wait for it any more";

/* The reason of one that has failed, and whose failure its process goes on with. */
static const char failure_taken[] = "commandbus: its process goes on with its failure";

const int64_t lost_reply_ms = 60000, outcome_wait_ms = 120000;

/* ---- sending ---- */

static void command_done(run_command *c)
{
    free(c->domain);
    free(c->command_type);
    json_object_put(c->data);
    *c = (run_command){ 0 };
}

void commands_drop(run_commands *c, size_t kept)
{
    while (c->n > kept)
        command_done(&c->items[--c->n]);
}

/* Copies the texts. False, and nothing added, without memory. */
static bool commands_add(run_commands *c, const char *domain, const char *command_type,
                         const run_command *more)
{
    if (c->n == c->room) {
        size_t room = c->room ? 2 * c->room : 4;
        run_command *items = realloc(c->items, room * sizeof *items);
        if (!items)
            return false;
        c->items = items;
        c->room = room;
    }
    run_command *to = &c->items[c->n];
    *to = *more;
    to->domain = strdup(domain);
    to->command_type = strdup(command_type);
    json_object_get(to->data);
    c->n++;
    if (to->domain && to->command_type)
        return true;
    commands_drop(c, c->n - 1);
    return false;
}

bool command_send(cb_process *p, record *r, const char *prefix, json_object *data_adopted,
                  int max_attempts, int timeout_seconds)
{
    OWNED(json_object) data = data_adopted;
    char key[512];

    if (!data || !r->domain || !r->command_type)
        return false;
    snprintf(key, sizeof key, "%s/%s/%d", prefix, r->name, r->send_no + 1);
    run_command command = { .id = cb_uuid_derived(&p->claim.row->process_id, key),
                            .data = data,
                            .max_attempts = max_attempts > 0 ? max_attempts : 0,
                            .timeout_seconds = timeout_seconds > 0 ? timeout_seconds : 0 };
    if (!commands_add(&p->outcome.commands, r->domain, r->command_type, &command))
        return false;
    r->send_no++;
    r->command_id = command.id;
    r->status = RECORD_WAITING;
    r->attempts++;
    r->max_attempts = max_attempts;
    r->dirty = true;
    record_set_text(&r->error_code, NULL);
    record_set_text(&r->error_message, NULL);
    p->figures.sent_to =
        p->figures.sent == 0 || (p->figures.sent_to && strcmp(p->figures.sent_to, r->domain) == 0)
            ? r->domain
            : NULL;
    p->figures.sent++;
    return true;
}

/* No record has it: the process has ended when it is sent, and nobody goes on with its reply. An
 * event tells of it. */
bool cb_hook_send(cb_process *p, const char *domain, const char *command_type, json_object *data)
{
    OWNED(json_object) given = NULL;
    json_object *told = NULL;
    char key[512];

    if (!pthread_equal(p->guard.thread, pthread_self())) {
        atomic_store(&p->guard.from_abroad, true);
        return false;
    }
    if (!p->guard.in_hook) {
        run_stray(p, "cb_hook_send() was called outside a hook");
        return false;
    }
    given = data ? json_object_get(data) : json_object_new_object();
    if (!domain || !command_type || !given || !(told = json_object_new_object()))
        return false;
    snprintf(key, sizeof key, "hook/%s/%zu", p->guard.function, p->outcome.commands.n);
    run_command command = { .id = cb_uuid_derived(&p->claim.row->process_id, key),
                            .data = given,
                            .without_reply = true };
    if (!commands_add(&p->outcome.commands, domain, command_type, &command)) {
        json_object_put(told);
        return false;
    }
    put_text(told, "command_id", command.id.text);
    put_text(told, "domain", domain);
    put_text(told, "command_type", command_type);
    run_event(p, "COMMAND_SENT", p->guard.function, told);
    p->figures.sent_to = NULL;
    p->figures.sent++;
    return true;
}

/* failure: the reply that tells of the one that is taken; NULL: none is. */
static void ask_to_cancel(cb_process *p, const record *r, const char *reason,
                          const inbox_item *failure)
{
    json_object *o = json_object_new_object();

    if (!o)
        return;
    put_text(o, "domain", r->domain);
    put_text(o, "command_id", r->command_id.text);
    put_text(o, "reason", reason);
    if (failure) {
        put(o, "failed", json_object_new_boolean(true));
        put_text(o, "error_type", reply_text(failure, "error_type"));
        put_text(o, "error_code", reply_text(failure, "error_code"));
    }
    json_object_array_add(p->outcome.cancels, o);
}

void command_cancel(cb_process *p, const record *r)
{
    ask_to_cancel(p, r, our_cancel, NULL);
}

void command_end_failed(cb_process *p, const record *r, const inbox_item *failure)
{
    ask_to_cancel(p, r, failure_taken, failure);
}

/* ---- replies ---- */

const char *reply_text(const inbox_item *reply, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(reply->payload, key, &value) && value
               ? json_object_get_string(value)
               : NULL;
}

json_object *reply_result(const inbox_item *reply)
{
    json_object *value = NULL;

    json_object_object_get_ex(reply->payload, "result", &value);
    return value;
}

bool reply_is_final(const inbox_item *reply)
{
    json_object *value = NULL;

    return !json_object_object_get_ex(reply->payload, "final", &value) ||
           json_object_get_boolean(value);
}

static bool is_canceled_for(const inbox_item *reply, const char *why)
{
    const char *reason = reply_text(reply, "reason");

    return reply->outcome == REPLY_CANCELED && reason && strcmp(reason, why) == 0;
}

bool reply_is_our_cancel(const inbox_item *reply)
{
    return is_canceled_for(reply, our_cancel);
}

bool reply_is_of_failure(const inbox_item *reply)
{
    return is_canceled_for(reply, failure_taken);
}

/* The id is derived from process, step and send number; whoever put the reply into the inbox has
 * put the domain of the command's row beside it, and that row says that this process sent it. */
bool reply_is_to(const inbox_item *item, const record *r)
{
    const char *id, *domain;

    if (item->kind != INBOX_REPLY || item->consumed || !r->command_id.text[0] || !r->domain)
        return false;
    id = reply_text(item, "command_id");
    domain = reply_text(item, "domain");
    return id && domain && strcasecmp(id, r->command_id.text) == 0 &&
           strcmp(domain, r->domain) == 0;
}

/* No order is promised between replies: of two the final one counts. */
inbox_item *command_reply(cb_process *p, const record *r, bool *final)
{
    inbox_item *found = NULL;

    *final = false;
    for (size_t i = 0; i < p->inbox.n && !*final; i++) {
        inbox_item *item = &p->inbox.items[i];
        if (!reply_is_to(item, r))
            continue;
        found = item;
        *final = reply_is_final(item);
    }
    return found;
}

/* What the command says of itself goes before a reply that tells how it was once: an operator may
 * have decided about it since. */
bool command_is_in_tsq(const record *r, const inbox_item *not_final)
{
    return r->command_status != COMMAND_NOT_ASKED ? r->command_status == COMMAND_IN_TSQ
                                                  : not_final != NULL;
}

/* Then its reply is on its way, or was lost: it comes with the next settle that asks for it
 * (restore_replies), and it would be wrong to say that nobody knows. */
bool command_has_ended(const record *r)
{
    return r->command_status == COMMAND_COMPLETED || r->command_status == COMMAND_FAILED ||
           r->command_status == COMMAND_CANCELED;
}

void command_await_lost(cb_process *p, record *r)
{
    command_cancel(p, r);
    record_set_timeout(r, lost_reply_ms);
}

void command_consume(cb_process *p, const record *r)
{
    for (size_t i = 0; i < p->inbox.n; i++) {
        if (reply_is_to(&p->inbox.items[i], r))
            p->inbox.items[i].consumed = true;
    }
}
