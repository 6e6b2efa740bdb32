/* HTTP routes of a handler set, served by a worker whose configuration says features.http-api.
 *
 *     static void quote(const cb_http_request *request, cb_http_answer *answer)
 *     {
 *         if (!is_pair(request->parts[0]))
 *             return cb_http_error(answer, 404, "NO_SUCH_PAIR", "nobody trades that");
 *         answer->body = json_object_new_object();
 *     }
 *
 *     static const cb_route routes[] = { { "GET", "/api/quotes/{pair}", quote } };
 *     CB_MODULE(rates, .routes = routes, .n_routes = CB_COUNT(routes), …);
 *
 * A route runs on one of a few threads that do nothing else, at the same time as itself: it
 * keeps nothing in globals, and bounds every wait but those for the database, which the worker
 * bounds (http.route-timeout): the statement then fails, and an answer from 500 on becomes a
 * 503. Before it is called the worker has checked the token, the size of the body and that
 * cb_json_check_object (json.h) takes it. */
#ifndef COMMANDBUS_ROUTE_H
#define COMMANDBUS_ROUTE_H

#include <commandbus/api.h>
#include <commandbus/db.h>
#include <json-c/json_object.h>
#include <stddef.h>

enum {
    CB_ROUTE_PARTS = 4,            /* most {…} of a path */
    CB_ROUTE_BODY = 64 * 1024,     /* most bytes of a body; more is 413 */
    CB_ROUTE_PART_LENGTH = 128 - 1 /* of what stands for a {…}; longer is 404 */
};

struct cb_process_types; /* commandbus/process.h */

/* Everything in it is borrowed for the call. */
typedef struct cb_http_request {
    const char
        *parts[CB_ROUTE_PARTS]; /* what stood where the path has {…}, in order; NULL beyond */
    json_object *body;          /* an object; NULL: there was none */
    /* A connection that this thread has for itself, outside any transaction, and to be left so. */
    cb_db *db;
    /* The process types of the loaded sets, for cb_process_start. */
    const struct cb_process_types *types;
    /* The value of a header, whatever the case of its name; NULL: there is none. */
    const char *(*header)(const struct cb_http_request *request, const char *name);
    void *arg; /* the worker's */
} cb_http_request;

/* Begins as 200 without a body. */
typedef struct {
    unsigned status;
    json_object *body; /* becomes the worker's */
} cb_http_answer;

typedef void cb_route_fn(const cb_http_request *request, cb_http_answer *answer);

/* One line of a set's table. Strings live as long as the set. */
typedef struct {
    const char *method; /* "GET", "POST", … */
    const char
        *path; /* "/api/payments/{id}/status": whole parts in braces match anything but nothing */
    cb_route_fn *answer;
} cb_route;

/* The answer becomes {"error": code, "message": …}; a body that it had is dropped. */
CB_API void cb_http_error(cb_http_answer *answer, unsigned status, const char *code,
                          const char *fmt, ...) CB_PRINTF(4, 5);

#endif
