/* The HTTP server: libmicrohttpd with one thread that polls, for each port. It never waits for a route: see
 * http_api.c. Small limits, since what comes are probes, scrapes and small requests. libmicrohttpd knows
 * idle connections only, and stops accepting when it is full; who has to go decides http_guard.c. */
#include "http.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fail.h"
#include "http_api.h"
#include "http_guard.h"
#include "http_listen.h"
#include "http_reply.h"
#include "http_route.h"
#include "http_token.h"

#define MOST_CONNECTIONS  256u
#define IDLE_SECONDS      5u
#define CONNECTION_MEMORY ((size_t)8 * 1024)
#define STACK_BYTES       ((size_t)256 * 1024)

/* A port, with connections of its own. */
typedef struct {
    struct http *http;
    const char *name; /* in metrics */
    bool has_probes, has_routes;
    struct MHD_Daemon *daemon; /* NULL: not open */
    http_guard *guard;
    char address[HTTP_ADDRESS_MOST];
} http_door;

enum {
    DOOR_MAIN,
    DOOR_API, /* when routes have a port of their own */
    DOORS
};

struct http {
    http_door doors[DOORS];
    http_source asked;     /* the worker's */
    http_source source;    /* the server's own, which asks that */
    api *api;              /* or NULL */
    char *token;           /* or NULL */
    char *responder_token; /* or NULL */
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

/* ---- what libmicrohttpd calls, on the thread of the port ---- */

static http_guest *guest_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static enum MHD_Result respond_api(http_door *d, struct MHD_Connection *connection,
                                   const char *path, const char *method, const char *upload,
                                   size_t *upload_size, void **state)
{
    http *h = d->http;
    const http_api routes = { h->api, h->token, h->responder_token, &h->source };
    bool is_call = *state != NULL, is_complete = is_call && *upload_size == 0;

    /* Before it is handed over: it may be answered before that returns. */
    if (is_complete)
        http_guard_mark(d->guard, guest_of(connection),
                        http_api_is_answered(*state) ? GUEST_READING : GUEST_WAITING);
    enum MHD_Result result =
        http_api_respond(&routes, connection, path, method, upload, upload_size, state);
    if (!is_call && *state)
        count_calls(h, true);
    else if (!is_call)
        http_guard_mark(d->guard, guest_of(connection), GUEST_READING); /* a refusal */
    return result;
}

static enum MHD_Result respond(void *arg, struct MHD_Connection *connection, const char *path,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **state)
{
    http_door *d = arg;
    http_answer a = { 0 };

    (void)version;
    if (d->has_routes && !(d->has_probes && http_route_find(path)))
        return respond_api(d, connection, path, method, upload, upload_size, state);
    answer(d->http, connection, path, method, &a);
    http_guard_mark(d->guard, guest_of(connection), GUEST_READING);
    return http_reply(connection, &a);
}

static void completed(void *arg, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode how)
{
    const http_door *d = arg;

    (void)how;
    http_guard_mark(d->guard, guest_of(connection), GUEST_ASKING); /* the next one, perhaps */
    if (!*state)
        return;
    api_call_free(*state);
    *state = NULL;
    count_calls(d->http, false);
}

/* The end is told before the socket is closed, so the guard never shuts down one of somebody else. */
static void connected(void *arg, struct MHD_Connection *connection, void **guest,
                      enum MHD_ConnectionNotificationCode what)
{
    const http_door *d = arg;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        http_guard_leave(d->guard, *guest);
        *guest = NULL;
        return;
    }
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *guest = http_guard_enter(
        d->guard, fd,
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    if (!*guest)
        shutdown(fd, SHUT_RDWR);
}

/* ---- metrics ---- */

static void write_metrics(const http *h, FILE *out)
{
    http_guard_figures figures[DOORS] = { 0 };

    fputs("# HELP commandbus_http_connections Open HTTP connections.\n"
          "# TYPE commandbus_http_connections gauge\n",
          out);
    for (size_t i = 0; i < DOORS; i++) {
        const http_door *d = &h->doors[i];
        if (!d->daemon)
            continue;
        figures[i] = http_guard_count(d->guard);
        fprintf(out, "commandbus_http_connections{port=\"%s\"} %zu\n", d->name,
                figures[i].connections);
    }
    fputs(
        "# HELP commandbus_http_closed_total HTTP connections closed because they took too long or "
        "others needed the room.\n"
        "# TYPE commandbus_http_closed_total counter\n",
        out);
    for (size_t i = 0; i < DOORS; i++) {
        const http_door *d = &h->doors[i];
        if (d->daemon)
            fprintf(out,
                    "commandbus_http_closed_total{port=\"%s\",reason=\"slow\"} %llu\n"
                    "commandbus_http_closed_total{port=\"%s\",reason=\"crowded\"} %llu\n",
                    d->name, (unsigned long long)figures[i].slow, d->name,
                    (unsigned long long)figures[i].crowded);
    }
}

static bool is_ready(void *arg, char *reason, size_t size)
{
    const http *h = arg;

    return h->asked.is_ready(h->asked.arg, reason, size);
}

/* Those of the worker, and after them those of the server. */
static bool metrics(void *arg, char **ret, cb_error *e)
{
    const http *h = arg;
    char *first = NULL, *text = NULL;
    size_t size = 0;

    if (!h->asked.metrics(h->asked.arg, &first, e))
        return false;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        fputs(first, out);
        write_metrics(h, out);
        bool written = !ferror(out);
        written = fclose(out) == 0 && written;
        *ret = written ? text : NULL;
        if (!written)
            free(text);
    }
    free(first);
    return (out && *ret) || fail_memory(e);
}

/* ---- start and end ---- */

/* A path with %00 stays as it is: unescaped it would end there, and be another. */
static size_t unescape(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

/* Adopts the socket: it is closed with the server, or here. Twice the connections, for those that the
 * guard has sent away are still there until they are closed. */
static bool start_adopt(http_door *d, int fd, cb_error *e)
{
    d->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        respond, d, MHD_OPTION_NOTIFY_COMPLETED, completed, d, MHD_OPTION_NOTIFY_CONNECTION,
        connected, d, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        2 * MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE,
        STACK_BYTES, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_UNESCAPE_CALLBACK, unescape,
        NULL, MHD_OPTION_END);
    if (d->daemon)
        return true;
    close(fd);
    return cb_fail(e, CB_MEMORY, "cannot start the HTTP server: out of threads or memory");
}

static bool open_door(http_door *d, const http_options *options, const http_port *port, cb_error *e)
{
    const http_guard_options guard = { .most = MOST_CONNECTIONS,
                                       .seconds = options->request_seconds,
                                       .on_event = options->on_event,
                                       .on_event_arg = options->on_event_arg };
    int fd = -1;

    return http_guard_open(&guard, &d->guard, e) &&
           http_listen(options->bind, port, &fd, d->address, e) && start_adopt(d, fd, e);
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
    const http_port port = { "http.port", options->port };
    const http_port api_port = { "http.api-port", options->api_port };
    bool split = options->api && options->splits_api;
    http *raw = calloc(1, sizeof *raw);

    if (!raw) {
        api_free(options->api);
        return fail_memory(e);
    }
    pthread_mutex_init(&raw->lock, NULL);
    open_condition(&raw->answered);
    OWNED(http) h = raw;
    h->api = options->api;
    h->asked = options->source;
    h->source = (http_source){ is_ready, metrics, h };
    if (options->token_file &&
        !http_token_read("http.token-file", options->token_file, &h->token, e))
        return false;
    if (options->responder_token_file &&
        !http_token_read("http.responder-token-file", options->responder_token_file,
                         &h->responder_token, e))
        return false;
    h->doors[DOOR_MAIN] = (http_door){
        .http = h, .name = "http", .has_probes = true, .has_routes = h->api && !split
    };
    h->doors[DOOR_API] = (http_door){ .http = h, .name = "api", .has_routes = true };
    if (!open_door(&h->doors[DOOR_MAIN], options, &port, e) ||
        (split && !open_door(&h->doors[DOOR_API], options, &api_port, e)))
        return false;
    *ret = http_take(&h);
    return true;
}

const char *http_address(const http *h)
{
    return h->doors[DOOR_MAIN].address;
}

const char *http_api_address(const http *h)
{
    return h->doors[DOOR_API].daemon ? h->doors[DOOR_API].address : NULL;
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
    for (size_t i = 0; i < DOORS; i++) {
        if (h->doors[i].daemon) /* nobody new; a connection of old gets STOPPING */
            close(MHD_quiesce_daemon(h->doors[i].daemon));
    }
    http_hurry(h, seconds);
    api_stop(h->api); /* nothing is suspended any more */
    wait_for_answers(h);
}

void http_free(http *h)
{
    if (!h)
        return;
    http_stop(h, 0);
    for (size_t i = 0; i < DOORS; i++) {
        if (h->doors[i].daemon)
            MHD_stop_daemon(h->doors[i].daemon);
        http_guard_free(h->doors[i].guard);
    }
    api_free(h->api);
    pthread_cond_destroy(&h->answered);
    pthread_mutex_destroy(&h->lock);
    free(h->token);
    free(h->responder_token);
    free(h);
}
