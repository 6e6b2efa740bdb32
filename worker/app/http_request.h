/* A request, from its headers to its answer: the worker's own routes, tokens, and the routes of
 * handler sets. All of it on the server's thread, which never waits: while a route of a set
 * runs, the connection is suspended. */
#ifndef APP_HTTP_REQUEST_H
#define APP_HTTP_REQUEST_H

#include <microhttpd.h>

#include "http.h"
#include "http_api.h"

/* Room for the methods of one path. */
#define HTTP_ALLOW_MOST 64

typedef struct {
    unsigned status;
    const char *type;            /* Content-Type; static */
    char *body;                  /* allocated; NULL when there was no memory */
    char allow[HTTP_ALLOW_MOST]; /* the Allow header of a 405, else "" */
} http_answer;

/* What the worker itself answers. */
typedef struct {
    const char *path;
    bool guarded; /* needs the token, if there is one */
    void (*answer)(const http_source *source, http_answer *ret);
} http_route;

/* NULL when there is none. Static storage. */
const http_route *http_route_find(const char *path);

/* What the file of that key holds without the blanks around it. The caller frees *ret. CB_MISUSE
 * when it cannot be read, is empty, or could not be a token. */
bool http_token_read(const char *key, const char *file, char **ret, cb_error *e) CB_NODISCARD;

/* Whether an Authorization header (which may be NULL) brings it. How long this takes does not
 * tell how much of a guess was right. */
bool http_token_matches(const char *token, const char *authorization);

/* What requests are answered from. */
typedef struct {
    api *api;              /* or NULL */
    char *token;           /* or NULL */
    char *responder_token; /* or NULL */
    http_source source;
} http_service;

/* A request to one of the worker's own routes, or to none. MHD_NO closes the connection: there
 * was no memory. */
enum MHD_Result http_own_respond(const http_service *s, struct MHD_Connection *connection,
                                 const char *path, const char *method);

/* A request to a route of a handler set, as libmicrohttpd calls it, several times for a request;
 * *state keeps the call between them. */
enum MHD_Result http_api_respond(const http_service *s, struct MHD_Connection *connection,
                                 const char *path, const char *method, const char *upload,
                                 size_t *upload_size, void **state);

/* Whether the request that `state` keeps has its answer, which the next call sends. */
bool http_api_is_answered(const void *state);

#endif
