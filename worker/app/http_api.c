/* From a connection to a call of a route, and back. */
#include "http_api.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http_reply.h"
#include "http_token.h"

/* ---- what a route is given of the connection ---- */

static const char *header_of(void *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_keys(void *arg, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    (void)kind;
    (void)value;
    *(int *)arg += strcasecmp(name, "Idempotency-Key") == 0;
    return MHD_YES;
}

/* Which of two keys counts is anybody's guess, and the next guess pays again. */
static bool has_two_keys(struct MHD_Connection *connection)
{
    int keys = 0;

    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_keys, &keys);
    return keys > 1;
}

static void resume(void *connection)
{
    MHD_resume_connection(connection);
}

/* "application/json", whatever follows a semicolon. */
static bool is_json(struct MHD_Connection *connection)
{
    static const char wanted[] = "application/json";
    const char *type = header_of(connection, MHD_HTTP_HEADER_CONTENT_TYPE);

    return type && strncasecmp(type, wanted, sizeof wanted - 1) == 0 &&
           strchr("; \t", type[sizeof wanted - 1]);
}

/* ---- answers ---- */

static enum MHD_Result reply(struct MHD_Connection *connection, const cb_http_answer *answer,
                             const char *allow)
{
    http_answer a = { .status = answer->status, .type = "application/json" };
    const char *text =
        answer->body ? json_object_to_json_string_ext(
                           answer->body, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
                     : "{}";

    snprintf(a.allow, sizeof a.allow, "%s", allow);
    a.body = text ? strdup(text) : NULL;
    return http_reply(connection, &a);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *code,
                              const char *message, const char *allow)
{
    cb_http_answer answer = { 0 };

    cb_http_error(&answer, status, code, "%s", message);
    enum MHD_Result result = reply(connection, &answer, allow);
    json_object_put(answer.body);
    return result;
}

static bool knows(struct MHD_Connection *connection, const char *token)
{
    return token && http_token_matches(token, header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION));
}

/* Any of ours: enough to be told which paths there are. */
static bool has_token(const http_api *h, struct MHD_Connection *connection)
{
    return !h->token || knows(connection, h->token) || knows(connection, h->responder_token);
}

/* Answers have a token of their own, also on loopback, which every login of the machine and every container
 * of the pod shares: the bus decides by login who may answer a process, the route acts as the worker, and
 * whoever submits payments or reads metrics is not to approve them. */
static enum MHD_Result check_token(const http_api *h, struct MHD_Connection *connection,
                                   const cb_route *route, bool *ret)
{
    *ret = true;
    if (!api_table_needs_token(route) && (!h->token || knows(connection, h->token)))
        return MHD_YES;
    if (api_table_needs_token(route) && knows(connection, h->responder_token))
        return MHD_YES;
    *ret = false;
    if (api_table_needs_token(route))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "TOKEN_REQUIRED",
                      "answers are taken from callers with the token of "
                      "http.responder-token-file only",
                      "");
    return refuse(connection, MHD_HTTP_UNAUTHORIZED, "UNAUTHORIZED",
                  "needs Authorization: Bearer <token>", "");
}

/* ---- the calls of one request ---- */

/* The first: the headers are there, the body is not. */
static enum MHD_Result begin(const http_api *h, struct MHD_Connection *connection, const char *path,
                             const char *method, void **state)
{
    char allow[HTTP_ALLOW_MOST], reason[256] = "not ready";
    api_parts parts;

    /* Who has no token is not told which paths there are. */
    if (!has_token(h, connection))
        return refuse(connection, MHD_HTTP_UNAUTHORIZED, "UNAUTHORIZED",
                      "needs Authorization: Bearer <token>", "");
    const cb_route *route =
        api_table_find(api_routes(h->api), method, path, &parts, allow, sizeof allow);
    if (!route && allow[0])
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED",
                      "there are other methods here, see Allow", allow);
    if (!route)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "NOT_FOUND", "there is nothing here", "");
    bool may_ask;
    enum MHD_Result refused = check_token(h, connection, route, &may_ask);
    if (!may_ask)
        return refused;
    if (has_two_keys(connection))
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "INVALID_IDEMPOTENCY_KEY",
                      "there is more than one Idempotency-Key", "");
    if (!h->source->is_ready(h->source->arg, reason, sizeof reason))
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "NOT_READY", reason, "");
    api_call *call = api_call_new(route, &parts);
    if (!call)
        return MHD_NO;
    call->is_json = is_json(connection);
    call->header = header_of;
    call->resume = resume;
    call->connection = connection;
    *state = call;
    return MHD_YES;
}

/* The body is complete. Suspended first: the route may be done before this returns. */
static enum MHD_Result hand_over(const http_api *h, struct MHD_Connection *connection,
                                 api_call *call)
{
    MHD_suspend_connection(connection);
    if (api_submit(h->api, call))
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

enum MHD_Result http_api_respond(const http_api *h, struct MHD_Connection *connection,
                                 const char *path, const char *method, const char *upload,
                                 size_t *upload_size, void **state)
{
    api_call *call = *state;

    if (!call)
        return begin(h, connection, path, method, state);
    if (call->answered)
        return reply(connection, &call->answer, "");
    if (*upload_size == 0)
        return hand_over(h, connection, call);
    if (!api_call_take(call, upload, *upload_size))
        return MHD_NO;
    *upload_size = 0;
    return MHD_YES;
}
