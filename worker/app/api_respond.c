/* POST /api/processes/{processId}/responses/{name}: an answer for a process of whatever type.
 *
 * The body is the payload; an Idempotency-Key is the response's id, so that a request may be repeated. What the type does not
 * take, by name or by payload, the bus refuses (commandbus.check_response), with the same words as `process respond`. */
#include "api_respond.h"

#include <commandbus/process_request.h>
#include <string.h>

enum {
    LONGEST_KEY = 200
};

static const struct {
    cb_code code;
    unsigned status;
} refusals[] = {
    { CB_PROCESS_NOT_FOUND, 404 }, { CB_INVALID_NAME, 422 },      { CB_INVALID_DATA, 422 },
    { CB_PAYLOAD_TOO_LARGE, 413 }, { CB_INVALID_OPERATION, 409 },
};

static void refuse(const cb_error *e, bool has_key, cb_http_answer *answer)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (refusals[i].code == e->code) {
            cb_http_error(answer, refusals[i].status, cb_code_name(e->code), "%s%s%s", e->message,
                          *e->hint ? ". " : "", e->hint);
            return;
        }
    }
    /* Messages of the server can hold data, a code cannot. */
    cb_http_error(answer, 503, "DATABASE_FAILED", "it is not known whether it was taken: %s%s%s",
                  has_key ? "ask again with the same Idempotency-Key"
                          : "look at the process before you ask again",
                  *e->sqlstate ? "; SQLSTATE " : "", e->sqlstate);
}

/* A UUID is the id itself; any other key makes one, of this process and this response: the same key for L1 and
 * L2 is two responses. `ret` is "" where there is no key. */
static bool read_key(const cb_http_request *request, const cb_uuid *process, const char *name,
                     cb_uuid *ret, cb_http_answer *answer)
{
    const char *key = request->header(request, "Idempotency-Key");
    bool is_sound = !key || (*key && strlen(key) <= LONGEST_KEY);

    for (const char *c = key; c && *c; c++)
        is_sound = is_sound && *c >= ' ' && *c <= '~';
    *ret = (cb_uuid){ "" };
    if (!is_sound)
        cb_http_error(answer, 400, "INVALID_IDEMPOTENCY_KEY",
                      "an Idempotency-Key has 1 to %d printable ASCII characters", LONGEST_KEY);
    else if (key && !cb_uuid_parse(key, ret)) {
        cb_uuid response = cb_uuid_from_name(process, name);
        *ret = cb_uuid_from_name(&response, key);
    }
    return is_sound;
}

static void tell(const cb_uuid *process, const char *name, bool accepted, cb_http_answer *answer)
{
    answer->status = accepted ? 202 : 200; /* 200: it was there already */
    answer->body = json_object_new_object();
    json_object_object_add(answer->body, "processId", json_object_new_string(process->text));
    json_object_object_add(answer->body, "response", json_object_new_string(name));
    json_object_object_add(answer->body, "accepted", json_object_new_boolean(accepted));
}

static void respond(const cb_http_request *request, cb_http_answer *answer)
{
    const char *name = request->parts[1],
               *payload = request->body ? json_object_to_json_string_ext(request->body,
                                                                         JSON_C_TO_STRING_PLAIN)
                                        : "{}";
    cb_uuid process, response;
    bool accepted = false;
    cb_error e = { 0 };

    if (!cb_uuid_parse(request->parts[0], &process))
        cb_http_error(answer, 404, "PROCESS_NOT_FOUND", "a process's id is a UUID");
    else if (!read_key(request, &process, name, &response, answer))
        return;
    else if (!payload)
        cb_http_error(answer, 503, "NO_MEMORY", "out of memory");
    else if (!cb_process_respond(request->db, process.text, name, payload,
                                 response.text[0] ? response.text : NULL, &accepted, &e))
        refuse(&e, response.text[0] != '\0', answer);
    else
        tell(&process, name, accepted, answer);
}

const cb_route api_respond_route = { "POST", "/api/processes/{processId}/responses/{name}",
                                     respond };
