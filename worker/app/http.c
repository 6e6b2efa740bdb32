/* The HTTP server: libmicrohttpd with one thread that polls. It never waits for a route: see http_api.c. Small limits,
 * since what comes are probes, scrapes and small requests. */
#include "http.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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
    bool is_stopped;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t answered;
    size_t n_calls; /* of routes, until their answer is sent or nobody wants it */
};

/* For what was answered to be sent, to somebody who may not read it. */
static const int send_seconds = 2;

static void count_calls(http *h, bool more)
{
    pthread_mutex_lock(&h->lock);
    h->n_calls = more ? h->n_calls + 1 : h->n_calls - 1;
    pthread_cond_signal(&h->answered);
    pthread_mutex_unlock(&h->lock);
}

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
        bool is_call = *state != NULL;
        enum MHD_Result result =
            http_api_respond(&routes, connection, path, method, upload, upload_size, state);
        if (!is_call && *state)
            count_calls(h, true);
        return result;
    }
    answer(h, connection, path, method, &a);
    return http_reply(connection, &a);
}

static void completed(void *arg, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode how)
{
    (void)connection, (void)how;
    if (!*state)
        return;
    api_call_free(*state);
    *state = NULL;
    count_calls(arg, false);
}

/* Adopts the socket: it is closed with the server, or here. */
static bool start_adopt(http *h, int fd, cb_error *e)
{
    h->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        respond, h, MHD_OPTION_NOTIFY_COMPLETED, completed, h, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE,
        STACK_BYTES, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (h->daemon)
        return true;
    close(fd);
    return cb_fail(e, CB_MEMORY, "cannot start the HTTP server: no thread or no memory");
}

static void open_condition(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool http_open(const http_options *options, http **ret, cb_error *e)
{
    http *raw = calloc(1, sizeof *raw);
    int fd = -1;

    if (!raw) {
        api_free(options->api);
        return cb_fail(e, CB_MEMORY, "out of memory");
    }
    pthread_mutex_init(&raw->lock, NULL);
    open_condition(&raw->answered);
    OWNED(http) h = raw;
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

void http_hurry(http *h, double seconds)
{
    if (h)
        api_hurry(h->api, seconds);
}

/* The server's thread sends what was answered; stopping it would cut that off. */
static void wait_for_answers(http *h)
{
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += send_seconds;
    pthread_mutex_lock(&h->lock);
    while (h->n_calls > 0 && error == 0)
        error = pthread_cond_timedwait(&h->answered, &h->lock, &until);
    pthread_mutex_unlock(&h->lock);
}

void http_stop(http *h, double seconds)
{
    if (!h || h->is_stopped)
        return;
    h->is_stopped = true;
    if (h->daemon)
        close(MHD_quiesce_daemon(h->daemon)); /* nobody new; a connection of old gets STOPPING */
    http_hurry(h, seconds);
    api_stop(h->api); /* nothing is suspended any more */
    wait_for_answers(h);
}

void http_free(http *h)
{
    if (!h)
        return;
    http_stop(h, 0);
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    api_free(h->api);
    pthread_cond_destroy(&h->answered);
    pthread_mutex_destroy(&h->lock);
    free(h->token);
    free(h);
}
