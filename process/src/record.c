/* Records between rows and memory. */
#include "record.h"

#include <stdlib.h>
#include <string.h>

#include "json_build.h"

const char *const record_kind_names[KINDS] = {
    [KIND_STEP] = "STEP",
    [KIND_WAIT] = "WAIT",
    [KIND_SIDE_EFFECT] = "SIDE_EFFECT",
    [KIND_COMMAND] = "COMMAND",
    [KIND_COMPENSATION] = "COMPENSATION",
    [KIND_RESPONSE] = "RESPONSE",
    [KIND_VERSION] = "VERSION",
    [KIND_OPERATOR] = "OPERATOR",
};

const char *const record_status_names[RECORD_STATUSES] = {
    [RECORD_STARTED] = "STARTED",     [RECORD_RETRY] = "RETRY",   [RECORD_WAITING] = "WAITING",
    [RECORD_COMPLETED] = "COMPLETED", [RECORD_FAILED] = "FAILED", [RECORD_ABANDONED] = "ABANDONED",
    [RECORD_CAUGHT] = "CAUGHT",
};

static const char *const inbox_kind_names[INBOX_KINDS] = {
    [INBOX_RESPONSE] = "RESPONSE",
    [INBOX_REPLY] = "REPLY",
    [INBOX_OPERATOR] = "OPERATOR",
};

static const char *const command_status_names[COMMAND_STATUSES] = {
    [COMMAND_NOT_ASKED] = "",
    [COMMAND_PENDING] = "PENDING",
    [COMMAND_IN_PROGRESS] = "IN_PROGRESS",
    [COMMAND_COMPLETED] = "COMPLETED",
    [COMMAND_FAILED] = "FAILED",
    [COMMAND_IN_TSQ] = "IN_TROUBLESHOOTING_QUEUE",
    [COMMAND_CANCELED] = "CANCELED",
};

static const char *const reply_outcome_names[REPLY_OUTCOMES] = {
    [REPLY_SUCCESS] = "SUCCESS",
    [REPLY_FAILED] = "FAILED",
    [REPLY_CANCELED] = "CANCELED",
};

static const char *const request_names[REQUESTS] = {
    [REQUEST_RETRY] = "RETRY",
    [REQUEST_CANCEL] = "CANCEL",
    [REQUEST_COMPLETE] = "COMPLETE",
};

bool record_is_open(const record *r)
{
    return r->status != RECORD_COMPLETED && r->status != RECORD_ABANDONED &&
           r->status != RECORD_CAUGHT;
}

void record_done(record *r)
{
    free(r->name);
    free(r->domain);
    free(r->command_type);
    free(r->error_code);
    free(r->error_message);
    json_object_put(r->result);
    json_object_put(r->opening);
    json_object_put(r->patch);
    json_object_put(r->compensation);
    *r = (record){ 0 };
}

bool record_set_text(char **to, const char *value)
{
    char *copy = value ? strdup(value) : NULL;

    if (value && !copy)
        return false;
    free(*to);
    *to = copy;
    return true;
}

void record_set_timeout(record *r, int64_t ms)
{
    r->timeout_at = 0;
    r->timeout_ms = ms;
    r->untimed = ms == 0;
    r->dirty = true;
}

void record_drop_result(record *r)
{
    json_object_put(r->result);
    r->result = NULL;
}

/* ---- reading ---- */

static json_object *column(json_object *row, int i)
{
    return json_object_is_type(row, json_type_array) ? json_object_array_get_idx(row, (size_t)i)
                                                     : NULL;
}

static int64_t number(json_object *row, int i)
{
    return json_object_get_int64(column(row, i));
}

static const char *text(json_object *row, int i)
{
    json_object *value = column(row, i);

    return value ? json_object_get_string(value) : NULL;
}

static bool read_texts(json_object *from, record *to)
{
    return record_set_text(&to->name, text(from, CB_RECORD_NAME)) && to->name &&
           record_set_text(&to->domain, text(from, CB_RECORD_DOMAIN)) &&
           record_set_text(&to->command_type, text(from, CB_RECORD_COMMAND_TYPE)) &&
           record_set_text(&to->error_code, text(from, CB_RECORD_ERROR_CODE)) &&
           record_set_text(&to->error_message, text(from, CB_RECORD_ERROR_MESSAGE));
}

bool record_read(json_object *from, int ordinal, record *to)
{
    const char *command_id = text(from, CB_RECORD_COMMAND_ID);
    const char *says = text(from, CB_RECORD_COMMAND_STATUS);

    *to = (record){ .ordinal = ordinal, .took_ms = -1 };
    if (number(from, CB_RECORD_ORDINAL) != ordinal || !read_texts(from, to))
        return false;
    int kind = name_index(text(from, CB_RECORD_KIND), record_kind_names, KINDS);
    int status = name_index(text(from, CB_RECORD_STATUS), record_status_names, RECORD_STATUSES);
    if (kind == KINDS || status == RECORD_STATUSES ||
        (command_id && !cb_uuid_parse(command_id, &to->command_id)))
        return false;
    to->kind = (record_kind)kind;
    to->status = (record_status)status;
    to->command_status =
        (command_status)name_index(says ? says : "", command_status_names, COMMAND_STATUSES);
    to->attempts = (int)number(from, CB_RECORD_ATTEMPTS);
    to->send_no = (int)number(from, CB_RECORD_SEND_NO);
    to->during = (int)number(from, CB_RECORD_DURING);
    to->timeout_at = number(from, CB_RECORD_TIMEOUT_MS);
    to->since = number(from, CB_RECORD_SINCE_MS);
    to->in_doubt = json_object_get_boolean(column(from, CB_RECORD_IN_DOUBT));
    to->result = json_object_get(column(from, CB_RECORD_RESULT));
    to->opening = json_object_get(column(from, CB_RECORD_OPENING));
    to->patch = json_object_get(column(from, CB_RECORD_PATCH));
    to->compensation = json_object_get(column(from, CB_RECORD_OWES));
    to->settled_status = to->status;
    to->settled_command = to->command_id;
    return true;
}

bool inbox_read(json_object *from, inbox_item *to)
{
    int kind = name_index(text(from, CB_INBOX_KIND), inbox_kind_names, INBOX_KINDS);

    *to = (inbox_item){ .seq = (int)number(from, CB_INBOX_SEQ),
                        .name = text(from, CB_INBOX_NAME),
                        .outcome = REPLY_OUTCOMES,
                        .request = REQUESTS,
                        .response_id = text(from, CB_INBOX_RESPONSE_ID),
                        .payload = column(from, CB_INBOX_PAYLOAD) };
    if (kind == INBOX_KINDS || !to->name)
        return false;
    to->kind = (inbox_kind)kind;
    if (to->kind == INBOX_REPLY)
        to->outcome = (reply_outcome)name_index(to->name, reply_outcome_names, REPLY_OUTCOMES);
    if (to->kind == INBOX_OPERATOR)
        to->request = (request_kind)name_index(to->name, request_names, REQUESTS);
    return true;
}

/* ---- writing ---- */

static const char *id_text(const cb_uuid *id)
{
    return id->text[0] ? id->text : NULL;
}

/* Whether what the database has of it may be of another attempt, or of another command. */
static bool may_repeat(const record *r)
{
    return r->settled_status == RECORD_RETRY || r->settled_status == RECORD_FAILED ||
           (r->settled_status == RECORD_STARTED && r->status == RECORD_STARTED) ||
           strcmp(r->settled_command.text, r->command_id.text) != 0;
}

void record_put(const record *r, bool is_new, cb_process_item *to, bool *whole)
{
    cb_process_record out = {
        .ordinal = r->ordinal,
        .kind = record_kind_names[r->kind],
        .status = record_status_names[r->status],
        .name = r->name,
        .attempts = r->attempts,
        .max_attempts = r->max_attempts > 0 ? r->max_attempts : 0,
        .send_no = r->send_no > 0 ? r->send_no : 0,
        .during = r->during > 0 ? r->during : 0,
        .command_id = id_text(&r->command_id),
        .response_id = id_text(&r->response_id),
        .domain = r->domain,
        .command_type = r->command_type,
        .timeout_ms = r->timeout_ms > 0 || r->untimed ? (double)r->timeout_ms : -1,
        .took_ms = r->took_ms,
        .error_code = r->error_code,
        .error_message = r->error_message,
        .result = json_plain(r->result, whole),
        .opening = json_plain(r->opening, whole),
        .patch = json_plain(r->patch, whole),
        .owes = json_plain(r->compensation, whole),
        .in_doubt = r->in_doubt,
        .finished = !record_is_open(r) || r->status == RECORD_FAILED,
    };

    if (is_new)
        cb_process_item_open(to, &out);
    else
        cb_process_item_rewrite(to, &out, may_repeat(r));
}

void record_settled(record *r)
{
    r->dirty = false;
    r->timeout_ms = 0;
    r->untimed = false;
    r->settled_status = r->status;
    r->settled_command = r->command_id;
}
