/* A set with routes, for tests of how they are served: one that gives back what it got, one that takes as long as
 * somebody holds a lock in the database. */
#include <commandbus/module.h>
#include <libpq-fe.h>

static void add(json_object *to, const char *name, const char *text)
{
    json_object_object_add(to, name, text ? json_object_new_string(text) : NULL);
}

static void echo(const cb_http_request *request, cb_http_answer *answer)
{
    answer->status = 201;
    answer->body = json_object_new_object();
    json_object_object_add(answer->body, "body", json_object_get(request->body));
    add(answer->body, "key", request->header(request, "idempotency-key"));
}

static void part(const cb_http_request *request, cb_http_answer *answer)
{
    answer->body = json_object_new_object();
    add(answer->body, "first", request->parts[0]);
    add(answer->body, "second", request->parts[1]);
}

/* Waits for advisory lock 4711. */
static void hold(const cb_http_request *request, cb_http_answer *answer)
{
    PGresult *result = PQexec(cb_db_conn(request->db), "SELECT pg_advisory_xact_lock_shared(4711)");
    bool held = PQresultStatus(result) == PGRES_TUPLES_OK;

    PQclear(result);
    if (!held)
        cb_http_error(answer, 503, "NOT_HELD", "the lock was not given");
}

static const cb_route routes[] = {
    { "POST", "/desk/echo", echo },
    { "PUT", "/desk/echo", echo },
    { "GET", "/desk/{first}/parts/{second}", part },
    { "GET", "/desk/hold", hold },
};

static cb_outcome noop(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return CB_SUCCESS;
}

static const cb_handler handlers[] = { { "Desk", noop } };

CB_MODULE(desk, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .routes = routes,
          .n_routes = CB_COUNT(routes));
