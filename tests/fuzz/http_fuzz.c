/* Requests to the worker's HTTP port: which route they are for, the token, the body.
 *
 *     method
 *     path
 *     the Authorization header
 *     the body, with all lines that follow */
#include "fuzz.h"

#include "http_api.h"
#include "http_request.h"
#include "json_check.h"

static const char *sent; /* the body, as it came */

static void answer(const cb_http_request *request, cb_http_answer *ret)
{
    cb_error e = { 0 };

    if (request->body)
        FUZZ_CHECK(json_check(sent, JSON_OBJECT, "body", &e), "%s", e.message);
    FUZZ_CHECK(!request->header(request, "Idempotency-Key"), "a header that was not sent");
    for (int i = 0; i < CB_ROUTE_PARTS && request->parts[i]; i++)
        FUZZ_CHECK(*request->parts[i] && !strchr(request->parts[i], '/') &&
                       strlen(request->parts[i]) <= CB_ROUTE_PART_LENGTH,
                   "'%s' is not part of a path", request->parts[i]);
    ret->body = json_object_get(request->body);
}

static const cb_route routes[] = {
    { "POST", "/api/payments", answer },
    { "GET", "/api/payments", answer },
    { "GET", "/api/payments/{id}/status", answer },
    { "DELETE", "/api/payments/{id}/{level}", answer },
    { "PUT", "/{a}/{b}/{c}/{d}", answer },
    { "GET", "/", answer },
};
static const cb_module module = { .name = "fuzz", .routes = routes, .n_routes = CB_COUNT(routes) };

static const api_table *table(void)
{
    static api_table *opened;
    const cb_module *modules[] = { &module };
    cb_error e = { 0 };

    if (!opened)
        FUZZ_CHECK(api_table_open(modules, 1, &opened, &e), "%s", e.message);
    return opened;
}

static const char *no_header(void *connection, const char *name)
{
    (void)connection, (void)name;
    return NULL;
}

static void check_call(const cb_route *route, const api_parts *parts, const char *body, size_t n)
{
    api_call *call = api_call_new(route, parts);

    FUZZ_CHECK(call, "no memory");
    call->header = no_header;
    call->is_json = true;
    sent = body;
    /* In two pieces, as it may come over the network. */
    FUZZ_CHECK(api_call_take(call, body, n / 2) && api_call_take(call, body + n / 2, n - n / 2),
               "no memory");
    api_call_run(call, NULL, NULL);
    FUZZ_CHECK(call->answer.status == 200 || (call->answer.status >= 400 && call->answer.body),
               "status %u", call->answer.status);
    api_call_free(call);
}

static void check_token(const char *authorization)
{
    static const char token[] = "s3cret";
    bool is_it =
        strncasecmp(authorization, "Bearer ", 7) == 0 && strcmp(authorization + 7, token) == 0;

    FUZZ_CHECK(http_token_matches(token, authorization) == is_it, "%s", authorization);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_SPLIT(in, data, size);
    char allowed[HTTP_ALLOW_MOST];
    size_t skip = 0;
    api_parts parts = { .n = 0 };

    const char *method = fuzz_line(&in, 0), *path = fuzz_line(&in, 1);
    const http_route *own = http_route_find(path);
    FUZZ_CHECK(!own || strcmp(own->path, path) == 0, "%s", path);
    check_token(fuzz_line(&in, 2));
    const cb_route *route = api_table_find(table(), method, path, &parts, allowed, sizeof allowed);
    FUZZ_CHECK(strlen(allowed) < sizeof allowed, "Allow does not end");
    FUZZ_CHECK(!route || strcmp(route->method, method) == 0, "%s", method);
    for (int line = 0; line < 3 && skip < size; line++) {
        const uint8_t *end = memchr(data + skip, '\n', size - skip);
        skip = end ? (size_t)(end + 1 - data) : size;
    }
    FUZZ_TEXT(body, data + skip, size - skip);
    if (route)
        check_call(route, &parts, body, size - skip);
    return 0;
}
