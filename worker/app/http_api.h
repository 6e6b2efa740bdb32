/* Requests to the routes of handler sets, from the server's thread: this gathers the body and hands the call over; while
 * the route runs the connection is suspended and the thread is free for others. */
#ifndef APP_HTTP_API_H
#define APP_HTTP_API_H

#include <microhttpd.h>

#include "api.h"
#include "http.h"

/* Borrowed. */
typedef struct {
    api *api;
    const char *token;           /* or NULL */
    const char *responder_token; /* or NULL */
    const http_source *source;
} http_api;

/* As libmicrohttpd calls it, several times for a request; *state keeps the call between them. */
enum MHD_Result http_api_respond(const http_api *h, struct MHD_Connection *connection,
                                 const char *path, const char *method, const char *upload,
                                 size_t *upload_size, void **state);

/* Whether the request that `state` keeps has its answer, which the next call sends. */
bool http_api_is_answered(const void *state);

#endif
