/* Routes: which one a request is for, how it is asked, and the one that is the worker's own. */
#include <commandbus/json.h>
#include <commandbus/process_request.h>
#include <json-c/json_tokener.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "http_api.h"
#include "http_request.h"
#include "text.h"

enum {
    DEEPEST = 16, /* levels of JSON */
    LONGEST_KEY = 200
};

DEFINE_OWNED(json_tokener, json_tokener_free)

/* ---- an answer for a process of any type: POST /api/processes/{processId}/responses/{name} ----
 *
 * The body is the payload; an Idempotency-Key is the response's id, so that a request may be
 * repeated. What the type does not take, by name or by payload, the bus refuses
 * (commandbus.check_response), with the same words as `process respond`. */

static const struct {
    cb_code code;
    unsigned status;
} refusals[] = {
    { CB_PROCESS_NOT_FOUND, 404 }, { CB_INVALID_NAME, 422 },      { CB_INVALID_DATA, 422 },
    { CB_PAYLOAD_TOO_LARGE, 413 }, { CB_INVALID_OPERATION, 409 },
};

static void respond_refuse(const cb_error *e, bool has_key, cb_http_answer *answer)
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

/* A UUID is the id itself; any other key makes one, of this process and this response: the same
 * key for L1 and L2 is two responses. `ret` is "" where there is no key. */
static bool respond_read_key(const cb_http_request *request, const cb_uuid *process,
                             const char *name, cb_uuid *ret, cb_http_answer *answer)
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

static void respond_answer(const cb_http_request *request, cb_http_answer *answer)
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
    else if (!respond_read_key(request, &process, name, &response, answer))
        return;
    else if (!payload)
        cb_http_error(answer, 503, "NO_MEMORY", "out of memory");
    else if (!cb_process_respond(request->db, process.text, name, payload,
                                 response.text[0] ? response.text : NULL, &accepted, &e))
        respond_refuse(&e, response.text[0] != '\0', answer);
    else {
        answer->status = accepted ? 202 : 200; /* 200: it was there already */
        answer->body = json_object_new_object();
        json_object_object_add(answer->body, "processId", json_object_new_string(process.text));
        json_object_object_add(answer->body, "response", json_object_new_string(name));
        json_object_object_add(answer->body, "accepted", json_object_new_boolean(accepted));
    }
}

/* It acts with the worker's rights, by which any response may be brought: it is for callers with
 * a token only. */
static const cb_route respond_route = { "POST", "/api/processes/{processId}/responses/{name}",
                                        respond_answer };

/* ---- the table: it is short, and the loop goes over all of it ---- */

struct api_table {
    const cb_route **routes;
    size_t n;
};

/* The length of the part that begins behind a slash. */
static size_t route_part_length(const char *part)
{
    return strcspn(part, "/");
}

/* Takes what stands for a {…}. */
static bool route_take_part(const char *part, size_t length, api_parts *parts)
{
    if (length == 0 || length > CB_ROUTE_PART_LENGTH || parts->n == CB_ROUTE_PARTS)
        return false;
    memcpy(parts->text[parts->n], part, length);
    parts->text[parts->n++][length] = '\0';
    return true;
}

static bool route_matches(const char *pattern, const char *path, api_parts *parts)
{
    parts->n = 0;
    while (*pattern == '/' && *path == '/') {
        size_t wanted = route_part_length(++pattern), found = route_part_length(++path);
        bool fits = *pattern == '{' ? route_take_part(path, found, parts)
                                    : wanted == found && strncmp(pattern, path, found) == 0;
        if (!fits)
            return false;
        pattern += wanted;
        path += found;
    }
    return !*pattern && !*path;
}

/* Whether one path can be both: part by part the same, or one of the two takes anything. */
static bool route_overlaps(const char *a, const char *b)
{
    while (*a == '/' && *b == '/') {
        size_t n = route_part_length(++a), m = route_part_length(++b);
        if (*a != '{' && *b != '{' && (n != m || strncmp(a, b, n) != 0))
            return false;
        a += n;
        b += m;
    }
    return !*a && !*b;
}

/* What the worker itself answers beside the routes of sets. */
static const cb_module own = { .name = "worker", .routes = &respond_route, .n_routes = 1 };

static bool api_table_add(api_table *table, const cb_module *module, const cb_route *route,
                          cb_error *e)
{
    if (http_route_find(route->path))
        return fail_misuse(e, "Give it another path.",
                           "set '%s' has a route %s, where the worker answers", module->name,
                           route->path);
    for (size_t i = 0; i < table->n; i++) {
        const cb_route *other = table->routes[i];
        if (strcmp(other->method, route->method) == 0 && route_overlaps(other->path, route->path))
            return fail_misuse(e, "Give one of them another path, or load one of the sets only.",
                               "two routes for %s %.100s (set '%s') and %.100s", route->method,
                               route->path, module->name, other->path);
    }
    table->routes[table->n++] = route;
    return true;
}

bool api_table_open(const cb_module *const *modules, size_t n, api_table **ret, cb_error *e)
{
    OWNED(api_table) table = calloc(1, sizeof *table);
    size_t most = own.n_routes;

    for (size_t i = 0; i < n; i++)
        most += modules[i]->n_routes;
    if (!table || !(table->routes = calloc(most, sizeof *table->routes)))
        return fail_memory(e);
    for (size_t i = 0; i < own.n_routes; i++) {
        if (!api_table_add(table, &own, &own.routes[i], e))
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < modules[i]->n_routes; k++) {
            if (!api_table_add(table, modules[i], &modules[i]->routes[k], e))
                return false;
        }
    }
    *ret = api_table_take(&table);
    return true;
}

void api_table_free(api_table *table)
{
    if (!table)
        return;
    free(table->routes);
    free(table);
}

bool api_table_needs_token(const cb_route *route)
{
    return route == &respond_route;
}

const cb_route *api_table_find(const api_table *table, const char *method, const char *path,
                               api_parts *parts, char *allowed, size_t size)
{
    allowed[0] = '\0';
    for (size_t i = 0; i < table->n; i++) {
        const cb_route *route = table->routes[i];
        if (!route_matches(route->path, path, parts))
            continue;
        if (strcmp(route->method, method) == 0)
            return route;
        text_append(allowed, size, "%s%s", *allowed ? ", " : "", route->method);
    }
    return NULL;
}

/* ---- a request: its body gathered, checked, and given to its route ---- */

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

/* By our own rules first: json-c makes what it can of NaN, half a surrogate pair or an integer
 * that has no room, and of a key that is there twice the last; what is read is to be what was
 * sent. C strings end at a NUL. */
static json_object *call_parse(const api_call *call, cb_error *e)
{
    OWNED(json_tokener) tokener = json_tokener_new_ex(DEEPEST);

    cb_fail(e, CB_INVALID_DATA, "the body must be one JSON object, at most %d deep", DEEPEST);
    if (!tokener || memchr(call->body, '\0', call->n_body) ||
        !cb_json_check_object(call->body, "the body", e))
        return NULL;
    return json_tokener_parse_ex(tokener, call->body, (int)call->n_body + 1);
}

/* False: the answer says why it is not asked. */
static bool call_read_body(api_call *call, json_object **ret)
{
    cb_error e = { 0 };

    if (call->too_large)
        cb_http_error(&call->answer, 413, "BODY_TOO_LARGE", "a body has at most %d bytes",
                      CB_ROUTE_BODY);
    else if (call->n_body > 0 && !call->is_json)
        cb_http_error(&call->answer, 415, "NOT_JSON", "say Content-Type: application/json");
    else if (call->n_body > 0 && !(*ret = call_parse(call, &e)))
        cb_http_error(&call->answer, 400, "INVALID_JSON", "%s", e.message);
    return call->answer.status == 200;
}

static const char *call_header(const cb_http_request *request, const char *name)
{
    const api_call *call = request->arg;

    return call->header(call->connection, name);
}

void api_call_run(api_call *call, cb_db *db, const cb_process_types *types)
{
    cb_http_request request = { .db = db, .types = types, .header = call_header, .arg = call };
    OWNED(json_object) body = NULL;

    if (!call_read_body(call, &body))
        return;
    for (size_t i = 0; i < call->parts.n; i++)
        request.parts[i] = call->parts.text[i];
    request.body = body;
    call->route->answer(&request, &call->answer);
}
