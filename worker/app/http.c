/* The HTTP server: libmicrohttpd with one thread that polls. It never waits for a route: see http_api.c. Small limits,
 * since what comes are probes, scrapes and small requests. */
#include "http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http_api.h"
#include "http_listen.h"
#include "http_reply.h"
#include "http_route.h"
#include "http_token.h"

#define MOST_CONNECTIONS  256u
#define IDLE_SECONDS      5u
#define CONNECTION_MEMORY ((size_t)8 * 1024)
#define STACK_BYTES       ((size_t)256 * 1024)

struct http {
    struct MHD_Daemon *daemon;
    http_source source;
    api *api;    /* or NULL */
    char *token; /* or NULL */
    char address[HTTP_ADDRESS_MOST];
};

static void answer(const http *h, struct MHD_Connection *connection, const char *path,
                   const char *method, http_answer *ret)
{
    const http_route *route = http_route_find(path);

    if (!route) {
        http_answer_text(ret, MHD_HTTP_NOT_FOUND, "not found: try /livez, /readyz or /metrics");
    } else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
               strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        http_answer_text(ret, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
        strcpy(ret->allow, "GET, HEAD");
    } else if (route->guarded && h->token &&
               !http_token_matches(h->token,
                                   MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                               MHD_HTTP_HEADER_AUTHORIZATION))) {
        http_answer_text(ret, MHD_HTTP_UNAUTHORIZED, "needs Authorization: Bearer <token>");
    } else {
        route->answer(&h->source, ret);
    }
}

static enum MHD_Result respond(void *arg, struct MHD_Connection *connection, const char *path,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **state)
{
    http *h = arg;
    http_answer a = { 0 };

    (void)version;
    if (h->api && !http_route_find(path)) {
        const http_api routes = { h->api, h->token, &h->source };
        return http_api_respond(&routes, connection, path, method, upload, upload_size, state);
    }
    answer(h, connection, path, method, &a);
    return http_reply(connection, &a);
}

static void completed(void *arg, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode how)
{
    (void)arg, (void)connection, (void)how;
    api_call_free(*state);
    *state = NULL;
}

/* Adopts the socket: it is closed with the server, or here. */
static bool start_adopt(http *h, int fd, cb_error *e)
{
    h->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        respond, h, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE,
        STACK_BYTES, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (h->daemon)
        return true;
    close(fd);
    return cb_fail(e, CB_MEMORY, "cannot start the HTTP server: no thread or no memory");
}

bool http_open(const http_options *options, http **ret, cb_error *e)
{
    OWNED(http) h = calloc(1, sizeof *h);
    int fd = -1;

    if (!h) {
        api_free(options->api);
        return cb_fail(e, CB_MEMORY, "out of memory");
    }
    h->api = options->api;
    h->source = options->source;
    if (options->token_file && !http_token_read(options->token_file, &h->token, e))
        return false;
    if (!http_listen(options->bind, options->port, &fd, h->address, e) || !start_adopt(h, fd, e))
        return false;
    *ret = http_take(&h);
    return true;
}

const char *http_address(const http *h)
{
    return h->address;
}

void http_free(http *h)
{
    if (!h)
        return;
    if (h->daemon)
        close(MHD_quiesce_daemon(h->daemon)); /* nobody new; a connection of old gets STOPPING */
    api_stop(h->api);                         /* nothing is suspended any more */
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    api_free(h->api);
    free(h->token);
    free(h);
}
