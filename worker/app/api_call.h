/* One request to a route of a handler set: what came, and what is answered. */
#ifndef APP_API_CALL_H
#define APP_API_CALL_H

#include <commandbus/run.h>

#include "api_table.h"

typedef struct api_call {
    struct api_call *next; /* in the queue */
    int64_t came_ms;       /* there, by api_now_ms */
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

/* Takes some of the body. What is beyond the limit is dropped and remembered. False without memory. */
bool api_call_take(api_call *call, const char *bytes, size_t n) CB_NODISCARD;

/* Checks the body and asks the route. Fills the answer. */
void api_call_run(api_call *call, cb_db *db, const cb_process_types *types);

#endif
