/* The routes of handler sets at work: a few threads of their own, each with a database connection, so that a slow route
 * holds up neither probes nor handlers. */
#ifndef APP_API_H
#define APP_API_H

#include "api_call.h"

/* Borrowed: all of it must outlive the api. */
typedef struct {
    const cb_module *const *modules;
    size_t n_modules;
    const char *database_url;
    const char *worker; /* who runs the processes that routes start, for people */
    double
        route_seconds; /* from coming to being answered, as far as the database keeps it waiting */
    const cb_step_route *steps; /* of the configuration, for processes that routes start */
    size_t n_steps;
    const cb_type_setting *settings;
    size_t n_settings;
} api_options;

typedef struct api api;

/* Starts the threads. They connect when they are first asked. */
bool api_open(const api_options *options, api **ret, cb_error *e) CB_NODISCARD;
/* Routes wait for the database for at most so long from now. NULL is fine. */
void api_hurry(api *a, double seconds);
/* Waits for routes that run; what waits in the queue is answered with 503. Every call has been resumed when it returns, and
 * no more are taken. NULL is fine. */
void api_stop(api *a);
void api_free(api *a);
DEFINE_OWNED(api, api_free)

const api_table *api_routes(const api *a);

/* Has the call run by one of the threads. False: too many wait already, the call is as it was. */
bool api_submit(api *a, api_call *call) CB_NODISCARD;

#endif
