/* A request, from its headers to its answer. */
#include "http_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fail.h"

/* ---- the token that opens guarded routes ---- */

static const char blanks[] = " \t\r\n";

static const char advice[] =
    "Put one line of 1 to 1024 visible ASCII characters there, readable for the worker.";

/* A header must hold it: visible ASCII in one piece. */
static bool token_is_sound(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return *text != '\0';
}

/* Reads up to `size` bytes. */
static bool token_read_file(const char *file, char *text, size_t size, size_t *ret)
{
    FILE *in = fopen(file, "re");

    if (!in)
        return false;
    *ret = fread(text, 1, size, in);
    bool fine = !ferror(in);
    int reason = errno;
    fclose(in);
    errno = reason;
    return fine;
}

bool http_token_read(const char *key, const char *file, char **ret, cb_error *e)
{
    char text[1030];
    size_t n = 0;

    if (!token_read_file(file, text, sizeof text - 1, &n))
        return fail_misuse(e, advice, "cannot read %s '%s': %s", key, file, strerror(errno));
    while (n > 0 && strchr(blanks, text[n - 1]))
        n--;
    text[n] = '\0';
    const char *token = text + strspn(text, blanks);
    if (n > 1024 || strlen(text) != n || !token_is_sound(token))
        return fail_misuse(e, advice, "%s '%s' holds no token", key, file);
    *ret = strdup(token);
    return *ret || fail_memory(e);
}

bool http_token_matches(const char *token, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    size_t n = strlen(token);

    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return false;
    const char *given = authorization + sizeof scheme - 1;
    size_t m = strlen(given);
    volatile unsigned char difference = n != m;
    for (size_t i = 0; i < m; i++)
        difference |= (unsigned char)(given[i] ^ token[i % n]);
    return difference == 0;
}

static const char *http_header(void *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool http_knows(struct MHD_Connection *connection, const char *token)
{
    return token &&
           http_token_matches(token, http_header(connection, MHD_HTTP_HEADER_AUTHORIZATION));
}

/* ---- answers, with the headers that every one has and those that its status needs ---- */

static const struct {
    unsigned status;
    const char *name, *value;
} extra_headers[] = {
    { MHD_HTTP_UNAUTHORIZED, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer" },
    { MHD_HTTP_SERVICE_UNAVAILABLE, MHD_HTTP_HEADER_RETRY_AFTER, "1" },
};

static void http_add_headers(struct MHD_Response *response, const http_answer *answer)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (answer->allow[0])
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow);
    for (size_t i = 0; i < sizeof extra_headers / sizeof *extra_headers; i++) {
        if (extra_headers[i].status == answer->status)
            MHD_add_response_header(response, extra_headers[i].name, extra_headers[i].value);
    }
}

/* Adopts the answer's body. MHD_NO closes the connection: there was no memory. */
static enum MHD_Result http_send(struct MHD_Connection *connection, http_answer *answer)
{
    if (!answer->body)
        return MHD_NO;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(answer->body), answer->body, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(answer->body);
        return MHD_NO;
    }
    http_add_headers(response, answer);
    enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- the worker's own routes ---- */

/* A short text. `text` is copied and ended with a newline. */
static void http_answer_text(http_answer *ret, unsigned status, const char *text)
{
    size_t n = strlen(text);

    *ret = (http_answer){ .status = status, .type = "text/plain; charset=utf-8" };
    ret->body = malloc(n + 2);
    if (ret->body) {
        memcpy(ret->body, text, n);
        memcpy(ret->body + n, "\n", 2);
    }
}

/* That this thread answers is all there is to say. A worker that hangs in a handler ends itself. */
static void own_livez(const http_source *source, http_answer *ret)
{
    (void)source;
    http_answer_text(ret, 200, "ok");
}

static void own_readyz(const http_source *source, http_answer *ret)
{
    char reason[256] = "not ready";

    if (source->is_ready(source->arg, reason, sizeof reason))
        http_answer_text(ret, 200, "ok");
    else
        http_answer_text(ret, 503, reason);
}

static void own_metrics(const http_source *source, http_answer *ret)
{
    cb_error e = { 0 };
    char *text = NULL;

    if (!source->metrics(source->arg, &text, &e)) {
        http_answer_text(ret, 500, e.message);
        return;
    }
    *ret = (http_answer){ .status = 200,
                          .type = "text/plain; version=0.0.4; charset=utf-8",
                          .body = text };
}

/* Probes stay open to everybody: a kubelet brings no token. */
static const http_route own_routes[] = {
    { "/livez", false, own_livez },
    { "/readyz", false, own_readyz },
    { "/metrics", true, own_metrics },
};

const http_route *http_route_find(const char *path)
{
    for (size_t i = 0; i < sizeof own_routes / sizeof *own_routes; i++) {
        if (strcmp(own_routes[i].path, path) == 0)
            return &own_routes[i];
    }
    return NULL;
}

enum MHD_Result http_own_respond(const http_service *s, struct MHD_Connection *connection,
                                 const char *path, const char *method)
{
    const http_route *route = http_route_find(path);
    http_answer a = { 0 };

    if (!route) {
        http_answer_text(&a, MHD_HTTP_NOT_FOUND, "not found: try /livez, /readyz or /metrics");
    } else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
               strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        http_answer_text(&a, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
        strcpy(a.allow, "GET, HEAD");
    } else if (route->guarded && s->token && !http_knows(connection, s->token)) {
        http_answer_text(&a, MHD_HTTP_UNAUTHORIZED, "needs Authorization: Bearer <token>");
    } else {
        route->answer(&s->source, &a);
    }
    return http_send(connection, &a);
}

/* ---- routes of handler sets: what one is given of the connection ---- */

static enum MHD_Result request_count_keys(void *arg, enum MHD_ValueKind kind, const char *name,
                                          const char *value)
{
    (void)kind;
    (void)value;
    *(int *)arg += strcasecmp(name, "Idempotency-Key") == 0;
    return MHD_YES;
}

/* Which of two keys counts is anybody's guess, and the next guess pays again. */
static bool request_has_two_keys(struct MHD_Connection *connection)
{
    int keys = 0;

    MHD_get_connection_values(connection, MHD_HEADER_KIND, request_count_keys, &keys);
    return keys > 1;
}

static void request_resume(void *connection)
{
    MHD_resume_connection(connection);
}

/* "application/json", whatever follows a semicolon. */
static bool request_is_json(struct MHD_Connection *connection)
{
    static const char wanted[] = "application/json";
    const char *type = http_header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);

    return type && strncasecmp(type, wanted, sizeof wanted - 1) == 0 &&
           strchr("; \t", type[sizeof wanted - 1]);
}

/* ---- what it answers, and who may ask ---- */

static enum MHD_Result request_reply(struct MHD_Connection *connection,
                                     const cb_http_answer *answer, const char *allow)
{
    http_answer a = { .status = answer->status, .type = "application/json" };
    const char *text =
        answer->body ? json_object_to_json_string_ext(
                           answer->body, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
                     : "{}";

    snprintf(a.allow, sizeof a.allow, "%s", allow);
    a.body = text ? strdup(text) : NULL;
    return http_send(connection, &a);
}

static enum MHD_Result request_refuse(struct MHD_Connection *connection, unsigned status,
                                      const char *code, const char *message, const char *allow)
{
    cb_http_answer answer = { 0 };

    cb_http_error(&answer, status, code, "%s", message);
    enum MHD_Result result = request_reply(connection, &answer, allow);
    json_object_put(answer.body);
    return result;
}

/* Any of ours: enough to be told which paths there are. */
static bool request_has_token(const http_service *s, struct MHD_Connection *connection)
{
    return !s->token || http_knows(connection, s->token) ||
           http_knows(connection, s->responder_token);
}

/* Answers have a token of their own, also on loopback, which every login of the machine and
 * every container of the pod shares: the bus decides by login who may answer a process, the
 * route acts as the worker, and whoever submits payments or reads metrics is not to approve
 * them. */
static enum MHD_Result request_check_token(const http_service *s, struct MHD_Connection *connection,
                                           const cb_route *route, bool *ret)
{
    *ret = true;
    if (!api_table_needs_token(route) && (!s->token || http_knows(connection, s->token)))
        return MHD_YES;
    if (api_table_needs_token(route) && http_knows(connection, s->responder_token))
        return MHD_YES;
    *ret = false;
    if (api_table_needs_token(route))
        return request_refuse(connection, MHD_HTTP_FORBIDDEN, "TOKEN_REQUIRED",
                              "answers are taken from callers with the token of "
                              "http.responder-token-file only",
                              "");
    return request_refuse(connection, MHD_HTTP_UNAUTHORIZED, "UNAUTHORIZED",
                          "needs Authorization: Bearer <token>", "");
}

/* ---- the calls of one request ---- */

/* The first: the headers are there, the body is not. */
static enum MHD_Result request_begin(const http_service *s, struct MHD_Connection *connection,
                                     const char *path, const char *method, void **state)
{
    char allow[HTTP_ALLOW_MOST], reason[256] = "not ready";
    api_parts parts;

    /* Who has no token is not told which paths there are. */
    if (!request_has_token(s, connection))
        return request_refuse(connection, MHD_HTTP_UNAUTHORIZED, "UNAUTHORIZED",
                              "needs Authorization: Bearer <token>", "");
    const cb_route *route =
        api_table_find(api_routes(s->api), method, path, &parts, allow, sizeof allow);
    if (!route && allow[0])
        return request_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED",
                              "there are other methods here, see Allow", allow);
    if (!route)
        return request_refuse(connection, MHD_HTTP_NOT_FOUND, "NOT_FOUND", "there is nothing here",
                              "");
    bool may_ask;
    enum MHD_Result refused = request_check_token(s, connection, route, &may_ask);
    if (!may_ask)
        return refused;
    if (request_has_two_keys(connection))
        return request_refuse(connection, MHD_HTTP_BAD_REQUEST, "INVALID_IDEMPOTENCY_KEY",
                              "there is more than one Idempotency-Key", "");
    if (!s->source.is_ready(s->source.arg, reason, sizeof reason))
        return request_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "NOT_READY", reason, "");
    api_call *call = api_call_new(route, &parts);
    if (!call)
        return MHD_NO;
    call->is_json = request_is_json(connection);
    call->header = http_header;
    call->resume = request_resume;
    call->connection = connection;
    *state = call;
    return MHD_YES;
}

/* The body is complete. Suspended first: the route may be done before this returns. */
static enum MHD_Result request_hand_over(const http_service *s, struct MHD_Connection *connection,
                                         api_call *call)
{
    MHD_suspend_connection(connection);
    if (api_submit(s->api, call))
        return MHD_YES;
    cb_http_error(&call->answer, 503, "BUSY", "too many requests wait here already");
    call->answered = true;
    MHD_resume_connection(connection);
    return MHD_YES;
}

bool http_api_is_answered(const void *state)
{
    return ((const api_call *)state)->answered;
}

enum MHD_Result http_api_respond(const http_service *s, struct MHD_Connection *connection,
                                 const char *path, const char *method, const char *upload,
                                 size_t *upload_size, void **state)
{
    api_call *call = *state;

    if (!call)
        return request_begin(s, connection, path, method, state);
    if (call->answered)
        return request_reply(connection, &call->answer, "");
    if (*upload_size == 0)
        return request_hand_over(s, connection, call);
    if (!api_call_take(call, upload, *upload_size))
        return MHD_NO;
    *upload_size = 0;
    return MHD_YES;
}
