/* Writing what runs of processes came to: one statement, one transaction; one that the database
 * refuses is parked instead. */
#include <commandbus/process_row.h>
#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#include <stdio.h>
#include <string.h>

#include "cb_sql.h"
#include "fail.h"
#include "settle_call.h"
#include "utf8.h"

static bool write_items(buffer *json, const cb_process_settlement *items, size_t n, cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!items[i].item)
            return cb_fail(e, CB_MISUSE, "item %zu of %zu has no JSON", i + 1, n);
        buffer_add_text(json, i ? "," : "[");
        buffer_add_text(json, items[i].item);
    }
    buffer_add_text(json, "]");
    return !json->failed || fail_memory(e);
}

bool cb_process_settle(cb_db *db, const char *worker, cb_process_settlement *items, size_t n,
                       cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(json);
    params p = { 0 };

    if (!worker)
        return cb_fail(e, CB_MISUSE, "settling needs the name of the worker");
    if (n == 0)
        return true;
    if (!write_items(&json, items, n, e))
        return false;
    params_text(&p, worker);
    params_text(&p, json.bytes);
    if (!db_run(db, cb_sql_settle_processes, &p, DB_TEXT, &result, e))
        return false;

    const char *at = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
    for (size_t i = 0; i < n; i++) {
        if (!verdict_next(&at, &items[i].verdict))
            return cb_fail(e, CB_SERVER, "settle_processes gave no verdict on item %zu", i + 1);
    }
    settle_close_batches(db, result);
    return true;
}

/* ---- where one bad item must not spoil its batch ---- */

/* What the items can nest; more is no item of ours. */
enum {
    ITEM_MAX_DEPTH = 256
};

/* The item as an object; NULL for one that has no fence. */
static json_object *read_item(const char *item)
{
    OWNED(json_object) object = NULL;
    json_tokener *tokener = json_tokener_new_ex(ITEM_MAX_DEPTH);
    size_t length = strlen(item);

    if (!tokener)
        return NULL;
    if (length < INT32_MAX)
        object = json_tokener_parse_ex(tokener, item, (int)length);
    json_tokener_free(tokener);
    if (!json_object_is_type(object, json_type_object) ||
        !json_object_object_get_ex(object, "lease_no", NULL) ||
        !json_object_object_get_ex(object, "settle_no", NULL))
        return NULL;
    return json_object_get(object);
}

static bool is_checkpoint(json_object *item)
{
    json_object *value = NULL;

    return json_object_object_get_ex(item, "checkpoint", &value) && json_object_get_boolean(value);
}

/* The same fence, nothing of what was refused: an operator has to look at it. The decision that
 * the run obeyed is answered by that, or there could be no other. */
static void write_parking(buffer *json, const cb_uuid *process_id, json_object *item,
                          const cb_error *why)
{
    static const char *const kept[] = { "lease_no", "settle_no", "seen", "consumed" };
    char raw[400], message[sizeof raw * 3];

    snprintf(raw, sizeof raw, "the database refused what the run came to: %s%s%.300s",
             why->sqlstate, *why->sqlstate ? ", " : "", why->message);
    utf8_copy(message, sizeof message, raw);
    buffer_add_text(json, "{\"process_id\":");
    buffer_add_json_string(json, process_id->text);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        json_object *value = NULL;
        if (!json_object_object_get_ex(item, kept[i], &value))
            continue;
        buffer_add_text(json, ",");
        buffer_add_json_string(json, kept[i]);
        buffer_add_text(json, ":");
        buffer_add_text(json, json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
    }
    buffer_add_text(json,
                    ",\"refused\":true,\"status\":\"WAITING_FOR_TSQ\","
                    "\"error_code\":\"PERMANENT_FAILURE\",\"wake\":\"NEVER\",\"error_message\":");
    buffer_add_json_string(json, message);
    buffer_add_text(json, "}");
}

static bool settle_processes(const settle_run *run, void *items, size_t n, cb_error *e)
{
    return cb_process_settle(run->db, run->worker, items, n, e);
}

/* Parked with the database's reason. */
static bool replace_process(settle_run *run, void *given, cb_error *why)
{
    cb_process_settlement *item = given, instead = { .process_id = item->process_id };
    OWNED(json_object) refused = item->item ? read_item(item->item) : NULL;
    OWNED_BUFFER(json);

    if (!refused)
        return false;
    write_parking(&json, &item->process_id, refused, why);
    if (json.failed)
        return fail_memory(why);
    instead.item = json.bytes;
    if (!cb_process_settle(run->db, run->worker, &instead, 1, why))
        return false;
    /* A run whose checkpoint was refused must not go on: for it the fence is lost. */
    item->verdict =
        is_checkpoint(refused) && instead.verdict != CB_BUSY ? CB_STALE : instead.verdict;
    run->refused += instead.verdict == CB_SETTLED;
    return true;
}

bool cb_process_settle_each(cb_db *db, const char *worker, cb_process_settlement *items, size_t n,
                            size_t *refused, cb_error *e)
{
    static const settle_kind processes = { sizeof *items, settle_processes, replace_process };

    return settle_each(&processes, db, worker, items, n, refused, e);
}
