/* The HTTP server: libmicrohttpd with one thread that polls. Small limits, since all that comes are
 * probes and scrapes. */
#include "http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http_listen.h"
#include "http_route.h"
#include "http_token.h"

#define MOST_CONNECTIONS  64u
#define IDLE_SECONDS      5u
#define CONNECTION_MEMORY ((size_t)8 * 1024)
#define STACK_BYTES       ((size_t)256 * 1024)

struct http {
    struct MHD_Daemon *daemon;
    http_source source;
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
    } else if (route->guarded && h->token &&
               !http_token_matches(h->token,
                                   MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                               MHD_HTTP_HEADER_AUTHORIZATION))) {
        http_answer_text(ret, MHD_HTTP_UNAUTHORIZED, "needs Authorization: Bearer <token>");
    } else {
        route->answer(&h->source, ret);
    }
}

/* Headers that a status needs. */
static const struct {
    unsigned status;
    const char *name, *value;
} extra_headers[] = {
    { MHD_HTTP_METHOD_NOT_ALLOWED, MHD_HTTP_HEADER_ALLOW, "GET, HEAD" },
    { MHD_HTTP_UNAUTHORIZED, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer" },
};

static enum MHD_Result respond(void *arg, struct MHD_Connection *connection, const char *path,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **state)
{
    http_answer a = { 0 };

    (void)version, (void)upload, (void)upload_size, (void)state;
    answer(arg, connection, path, method, &a);
    if (!a.body)
        return MHD_NO; /* no memory: the connection is closed */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(a.body), a.body, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(a.body);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, a.type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    for (size_t i = 0; i < sizeof extra_headers / sizeof *extra_headers; i++) {
        if (extra_headers[i].status == a.status)
            MHD_add_response_header(response, extra_headers[i].name, extra_headers[i].value);
    }
    enum MHD_Result result = MHD_queue_response(connection, a.status, response);
    MHD_destroy_response(response);
    return result;
}

/* Adopts the socket: it is closed with the server, or here. */
static bool start_adopt(http *h, int fd, cb_error *e)
{
    h->daemon = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, respond,
                                 h, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                                 MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
                                 MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES,
                                 MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (h->daemon)
        return true;
    close(fd);
    return cb_fail(e, CB_MEMORY, "cannot start the HTTP server: no thread or no memory");
}

bool http_open(const http_options *options, http **ret, cb_error *e)
{
    OWNED(http) h = calloc(1, sizeof *h);
    int fd = -1;

    if (!h)
        return cb_fail(e, CB_MEMORY, "out of memory");
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
        MHD_stop_daemon(h->daemon);
    free(h->token);
    free(h);
}
