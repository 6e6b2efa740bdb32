/* A request: its body gathered, checked, and given to its route. */
#include "api_call.h"

#include <commandbus/json.h>
#include <json-c/json_tokener.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEEPEST = 16 /* levels of JSON */
};

DEFINE_OWNED(json_tokener, json_tokener_free)

api_call *api_call_new(const cb_route *route, const api_parts *parts)
{
    api_call *call = calloc(1, sizeof *call);

    if (call) {
        call->route = route;
        call->parts = *parts;
        call->answer.status = 200;
    }
    return call;
}

void api_call_free(api_call *call)
{
    if (!call)
        return;
    json_object_put(call->answer.body);
    free(call->body);
    free(call);
}

bool api_call_take(api_call *call, const char *bytes, size_t n)
{
    if (call->too_large || n > CB_ROUTE_BODY - call->n_body) {
        call->too_large = true;
        return true;
    }
    char *body = realloc(call->body, call->n_body + n + 1);
    if (!body)
        return false;
    call->body = body;
    memcpy(body + call->n_body, bytes, n);
    call->n_body += n;
    body[call->n_body] = '\0';
    return true;
}

/* By our own rules first: json-c makes what it can of NaN, half a surrogate pair or an integer that has no room, and of
 * a key that is there twice the last; what is read is to be what was sent. C strings end at a NUL. */
static json_object *parse(const api_call *call, cb_error *e)
{
    OWNED(json_tokener) tokener = json_tokener_new_ex(DEEPEST);

    cb_fail(e, CB_INVALID_DATA, "the body must be one JSON object, at most %d deep", DEEPEST);
    if (!tokener || memchr(call->body, '\0', call->n_body) ||
        !cb_json_check_object(call->body, "the body", e))
        return NULL;
    return json_tokener_parse_ex(tokener, call->body, (int)call->n_body + 1);
}

/* False: the answer says why it is not asked. */
static bool read_body(api_call *call, json_object **ret)
{
    cb_error e = { 0 };

    if (call->too_large)
        cb_http_error(&call->answer, 413, "BODY_TOO_LARGE", "a body has at most %d bytes",
                      CB_ROUTE_BODY);
    else if (call->n_body > 0 && !call->is_json)
        cb_http_error(&call->answer, 415, "NOT_JSON", "say Content-Type: application/json");
    else if (call->n_body > 0 && !(*ret = parse(call, &e)))
        cb_http_error(&call->answer, 400, "INVALID_JSON", "%s", e.message);
    return call->answer.status == 200;
}

static const char *header_of(const cb_http_request *request, const char *name)
{
    const api_call *call = request->arg;

    return call->header(call->connection, name);
}

void api_call_run(api_call *call, cb_db *db, const cb_process_types *types)
{
    cb_http_request request = { .db = db, .types = types, .header = header_of, .arg = call };
    OWNED(json_object) body = NULL;

    if (!read_body(call, &body))
        return;
    for (size_t i = 0; i < call->parts.n; i++)
        request.parts[i] = call->parts.text[i];
    request.body = body;
    call->route->answer(&request, &call->answer);
}
