/* A set with routes, for tests of how they are served: one that gives back what it got, some that
 * take as long as somebody holds a lock in the database, one that never returns, and one that
 * starts a process. */
#include <commandbus/module.h>
#include <commandbus/process.h>
#include <libpq-fe.h>
#include <time.h>

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

/* Waits for it in a transaction, and leaves that open when it is not given. */
static void forget(const cb_http_request *request, cb_http_answer *answer)
{
    cb_error e;

    if (cb_db_begin(request->db, &e))
        hold(request, answer);
    if (answer->status == 200 && !cb_db_commit(request->db, &e))
        cb_http_error(answer, 503, "NOT_COMMITTED", "there was no commit");
}

/* Waits for it again and again, whatever it is told. */
static void insist(const cb_http_request *request, cb_http_answer *answer)
{
    for (int i = 0; i < 3; i++)
        hold(request, answer);
}

static void nap(int64_t ms)
{
    nanosleep(&(struct timespec){ ms / 1000, (ms % 1000) * 1000000 }, NULL);
}

/* Does not return in the time of any test; lock 4712 shows that it is there. */
static void stay(const cb_http_request *request, cb_http_answer *answer)
{
    (void)answer;
    PQclear(PQexec(cb_db_conn(request->db), "SELECT pg_advisory_lock(4712)"));
    nap(3600000);
}

/* ---- a process with a step that takes its time, started by a route ---- */

typedef struct {
    int64_t ms;
} job;

CB_FIELDS(job_fields, job, CB_FIELD(job, ms, CB_INT));

static cb_outcome take_time(cb_context *ctx, void *state)
{
    (void)ctx;
    nap(((job *)state)->ms);
    return CB_SUCCESS;
}

static cb_flow job_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "first", take_time));
    CB_DO(cb_step(p, "second", take_time));
    return CB_DONE;
}

static const cb_process_type job_type = { .name = "DeskJob",
                                          .domain = "sample",
                                          .version = 1,
                                          .state = &job_fields,
                                          .execute = job_execute };
static const cb_process_type *const types[] = { &job_type };

static void begin(const cb_http_request *request, cb_http_answer *answer)
{
    json_object *ms = NULL;
    const char *status = NULL;
    cb_uuid id;
    cb_error e;

    json_object_object_get_ex(request->body, "ms", &ms);
    job j = { json_object_get_int64(ms) };
    if (!cb_process_start(request->db, request->types, "DeskJob", &j, &id, &status, &e,
                          .deferred = false)) {
        cb_http_error(answer, 503, "NOT_STARTED", "%s", e.message);
        return;
    }
    answer->body = json_object_new_object();
    add(answer->body, "status", status);
}

static const cb_route routes[] = {
    { "POST", "/desk/echo", echo },
    { "PUT", "/desk/echo", echo },
    { "GET", "/desk/{first}/parts/{second}", part },
    { "GET", "/desk/hold", hold },
    { "GET", "/desk/forget", forget },
    { "GET", "/desk/insist", insist },
    { "GET", "/desk/stay", stay },
    { "POST", "/desk/jobs", begin },
};

static cb_outcome noop(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return CB_SUCCESS;
}

static const cb_handler handlers[] = { { "Desk", noop } };

CB_MODULE(desk, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .routes = routes,
          .n_routes = CB_COUNT(routes), .processes = types, .n_processes = CB_COUNT(types));
