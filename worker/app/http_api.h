/* The routes of handler sets at work: a few threads of their own, each with a database
 * connection, so that a slow route holds up neither probes nor handlers. */
#ifndef APP_API_H
#define APP_API_H

#include <commandbus/module.h>
#include <commandbus/owned.h>
#include <commandbus/run.h>

/* ---- which route a request is for ---- */

/* The routes of the loaded sets, and of the worker itself. Immutable once it is there. */
typedef struct api_table api_table;

/* What a path gave for the {…} of its route. */
typedef struct {
    char text[CB_ROUTE_PARTS][CB_ROUTE_PART_LENGTH + 1];
    size_t n;
} api_parts;

/* Borrows the modules, which must outlive it. CB_MISUSE when two routes would answer the same
 * requests, or one would never be asked because the worker itself answers there. */
bool api_table_open(const cb_module *const *modules, size_t n, api_table **ret,
                    cb_error *e) CB_NODISCARD;
void api_table_free(api_table *table);
DEFINE_OWNED(api_table, api_table_free)

/* NULL when there is no such path or, if `allowed` is not empty afterwards, no such method: it
 * then holds those that there are, "GET, POST". A path is matched as it came, decoded. */
const cb_route *api_table_find(const api_table *table, const char *method, const char *path,
                               api_parts *parts, char *allowed, size_t size);

/* Whether it is there only for callers with a token: where the configuration has none, for
 * nobody. */
bool api_table_needs_token(const cb_route *route);

/* ---- one request: what came, and what is answered ---- */

typedef struct api_call {
    struct api_call *next; /* in the queue */
    int64_t came_ms;       /* there, by monotonic_ms */
    const cb_route *route;
    api_parts parts;
    char *body;
    size_t n_body;
    bool too_large;
    bool is_json; /* by its Content-Type */
    const char *(*header)(void *connection, const char *name);
    void (*resume)(void *connection); /* called when it is answered */
    void *connection;                 /* of both */
    cb_http_answer answer;
    bool answered;
} api_call;

/* NULL without memory. */
api_call *api_call_new(const cb_route *route, const api_parts *parts);
void api_call_free(api_call *call);

/* Takes some of the body. What is beyond the limit is dropped and remembered. False without
 * memory. */
bool api_call_take(api_call *call, const char *bytes, size_t n) CB_NODISCARD;

/* Checks the body and asks the route. Fills the answer. */
void api_call_run(api_call *call, cb_db *db, const cb_process_types *types);

/* ---- the threads ---- */

/* Borrowed: all of it must outlive the api. */
typedef struct {
    const cb_module *const *modules;
    size_t n_modules;
    const char *database_url;
    bool no_prepared;   /* cb_db_set_prepared */
    const char *worker; /* who runs the processes that routes start, for people */
    /* From coming to being answered, as far as the database keeps it waiting. */
    double route_seconds;
    /* For the processes that routes start: types, and what is configured of their steps and of
     * them. */
    const cb_process_type *const *process_types;
    size_t n_process_types;
    const cb_step_route *steps;
    size_t n_steps;
    const cb_type_setting *settings;
    size_t n_settings;
} api_options;

typedef struct api api;

/* Starts the threads. They connect when they are first asked. */
bool api_open(const api_options *options, api **ret, cb_error *e) CB_NODISCARD;
/* Routes wait for the database for at most so long from now. NULL is fine. */
void api_hurry(api *a, double seconds);
/* Waits for routes that run; what waits in the queue is answered with 503. Every call has been
 * resumed when it returns, and no more are taken. NULL is fine. */
void api_stop(api *a);
void api_free(api *a);
DEFINE_OWNED(api, api_free)

const api_table *api_routes(const api *a);

/* Has the call run by one of the threads. False: too many wait already, the call is as it was. */
bool api_submit(api *a, api_call *call) CB_NODISCARD;

#endif
