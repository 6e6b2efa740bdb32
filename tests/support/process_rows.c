/* Processes by SQL. */
#include "process_rows.h"

#include <json-c/json_tokener.h>
#include <stdio.h>
#include <string.h>

cb_uuid process_put(const char *sets)
{
    cb_uuid id = cb_uuid_new();
    char sql[2048];

    snprintf(sql, sizeof sql,
             "INSERT INTO commandbus.process (process_id, lease_no, lease_owner, lease_until, "
             "wake_at, created_at, updated_at, status, execution_model, domain, process_type, "
             "reply_queue, initial_state, state) VALUES ('%s', 1, 'w', now() + interval '1 min', "
             "now() + interval '1 min', now(), now(), 'EXECUTING', 'PROCESS_STEP', 'payments', "
             "'Test', 'payments__replies', '{}', '{\"n\": 0}')",
             id.text);
    test_exec(bus.conn, sql);
    if (*sets) {
        snprintf(sql, sizeof sql, "UPDATE commandbus.process SET %s WHERE process_id = '%s'", sets,
                 id.text);
        test_exec(bus.conn, sql);
    }
    return id;
}

cb_uuid process_park(const char *error_code)
{
    char sets[512];

    snprintf(sets, sizeof sets,
             "status = 'WAITING_FOR_TSQ', tsq_at = now(), lease_owner = NULL, lease_until = NULL, "
             "wake_at = NULL, error_code = '%s', error_message = 'it broke'",
             error_code);
    return process_put(sets);
}

cb_uuid process_put_command(const cb_uuid *process_id)
{
    char sql[1024];
    cb_uuid id = test_send_of_process(bus.conn, process_id, "fx", "BookFx", "{}");

    snprintf(sql, sizeof sql,
             "INSERT INTO commandbus.process_history (process_id, command_id, at, ordinal, "
             "attempts, send_no, kind, status, name, domain, command_type) VALUES ('%s', '%s', "
             "now(), 1, 1, 1, 'COMMAND', 'WAITING', 'bookFx', 'fx', 'BookFx')",
             process_id->text, id.text);
    test_exec(bus.conn, sql);
    return id;
}

const char *process_item(const cb_uuid *id, int settle_no, const char *members)
{
    static char items[8][4096];
    static unsigned next;
    char *item = items[next++ % 8];

    snprintf(item, sizeof items[0], "{\"process_id\":\"%s\",\"lease_no\":1,\"settle_no\":%d%s%s}",
             id->text, settle_no, *members ? "," : "", members);
    return item;
}

cb_verdict process_settle(const cb_uuid *id, int settle_no, const char *members)
{
    char *word = test_value(bus.conn,
                            "SELECT verdicts[1] FROM commandbus.settle_processes('w', "
                            "jsonb_build_array($1::jsonb))",
                            process_item(id, settle_no, members), NULL);
    cb_verdict verdict = CB_SETTLED;

    while (verdict < CB_STALE && strcmp(word, cb_verdict_name(verdict)) != 0)
        verdict++;
    cr_assert_str_eq(word, cb_verdict_name(verdict));
    free(word);
    return verdict;
}

/* ---- items of the C library ---- */

static json_object *member(json_object *o, const char *key)
{
    json_object *value = NULL;

    json_object_object_get_ex(o, key, &value);
    return value;
}

static const char *text(json_object *o, const char *key)
{
    return json_object_get_string(member(o, key));
}

static const char *json(json_object *o, const char *key)
{
    json_object *value = member(o, key);

    return value ? json_object_to_json_string(value) : NULL;
}

static int number(json_object *o, const char *key)
{
    return json_object_get_int(member(o, key));
}

static double time_of(json_object *o, const char *key, double otherwise)
{
    return member(o, key) ? json_object_get_double(member(o, key)) : otherwise;
}

static void add_record(cb_process_item *item, json_object *r)
{
    cb_process_item_open(
        item, &(cb_process_record){ .ordinal = number(r, "ordinal"),
                                    .kind = text(r, "kind"),
                                    .status = text(r, "status"),
                                    .name = text(r, "name"),
                                    .attempts = number(r, "attempts"),
                                    .timeout_ms = time_of(r, "timeout_ms", -1),
                                    .took_ms = time_of(r, "took_ms", -1),
                                    .result = json(r, "result"),
                                    .patch = json(r, "patch"),
                                    .finished = json_object_get_boolean(member(r, "finished")) });
}

static void add_command(cb_process_item *item, json_object *c)
{
    cb_process_item_send(item,
                         &(cb_process_command){ .domain = text(c, "domain"),
                                                .command_type = text(c, "command_type"),
                                                .data = json(c, "data"),
                                                .command_id = text(c, "command_id"),
                                                .max_attempts = number(c, "max_attempts"),
                                                .timeout_seconds = number(c, "timeout_seconds") });
}

cb_process_item *process_item_new(const cb_uuid *id, int settle_no, const char *members)
{
    OWNED(json_object) o = json_tokener_parse(process_item(id, settle_no, members));

    cr_assert(o, "%s", members);
    cb_process_item *item = cb_process_item_new(
        &(cb_process_outcome){ .process_id = *id,
                               .lease_no = number(o, "lease_no"),
                               .settle_no = settle_no,
                               .checkpoint = json_object_get_boolean(member(o, "checkpoint")),
                               .status = text(o, "status"),
                               .state = json(o, "state"),
                               .error_message = text(o, "error_message"),
                               .timeout_ms = time_of(o, "timeout_ms", 0),
                               .wake = text(o, "wake") });
    for (size_t i = 0; member(o, "records") && i < json_object_array_length(member(o, "records"));
         i++)
        add_record(item, json_object_array_get_idx(member(o, "records"), i));
    for (size_t i = 0; member(o, "commands") && i < json_object_array_length(member(o, "commands"));
         i++)
        add_command(item, json_object_array_get_idx(member(o, "commands"), i));
    return item;
}

void settlements_free(cb_process_settlement *settlements, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cb_process_item_free((cb_process_item *)settlements[i].item);
}
