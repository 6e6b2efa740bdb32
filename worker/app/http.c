/* The HTTP server: libmicrohttpd with one thread that polls, for each port. It never waits for a
 * route: see http_request.c. Small limits, since what comes are probes, scrapes and small
 * requests. libmicrohttpd knows idle connections only, and stops accepting when it is full; who
 * has to go decides http_guard.c. */
#include "http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fail.h"
#include "http_api.h"
#include "http_guard.h"
#include "http_request.h"
#include "thread.h"

#define MOST_CONNECTIONS  256u
#define BACKLOG           512 /* of those who come all at once */
#define IDLE_SECONDS      5u
#define SEND_MS           2000 /* for an answer to be sent, to somebody who may not read it */
#define CONNECTION_MEMORY ((size_t)8 * 1024)
#define STACK_BYTES       ((size_t)256 * 1024)
#define ADDRESS_SIZE      80 /* of "[address]:port" */

/* A port, with connections of its own. */
typedef struct {
    struct http *http;
    const char *name; /* in metrics */
    bool has_probes, has_routes;
    struct MHD_Daemon *daemon; /* NULL: not open */
    http_guard *guard;
    char address[ADDRESS_SIZE];
} http_door;

enum {
    DOOR_MAIN,
    DOOR_API, /* when routes have a port of their own */
    DOORS
};

struct http {
    http_door doors[DOORS];
    http_source asked;    /* the worker's */
    http_service service; /* owned; its source is the server's own, which asks that */
    bool is_stopped;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t answered;
    size_t n_calls; /* of routes, until their answer is sent or nobody wants it */
};

static void http_count_calls(http *h, bool more)
{
    pthread_mutex_lock(&h->lock);
    h->n_calls = more ? h->n_calls + 1 : h->n_calls - 1;
    pthread_cond_signal(&h->answered);
    pthread_mutex_unlock(&h->lock);
}

/* ---- what libmicrohttpd calls, on the thread of the port ---- */

static http_guest *http_guest_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static enum MHD_Result http_respond_api(http_door *d, struct MHD_Connection *connection,
                                        const char *path, const char *method, const char *upload,
                                        size_t *upload_size, void **state)
{
    http *h = d->http;
    bool is_call = *state != NULL, is_complete = is_call && *upload_size == 0;

    /* Before it is handed over: it may be answered before that returns. */
    if (is_complete)
        http_guard_mark(d->guard, http_guest_of(connection),
                        http_api_is_answered(*state) ? GUEST_READING : GUEST_WAITING);
    enum MHD_Result result =
        http_api_respond(&h->service, connection, path, method, upload, upload_size, state);
    if (!is_call && *state)
        http_count_calls(h, true);
    else if (!is_call)
        http_guard_mark(d->guard, http_guest_of(connection), GUEST_READING); /* a refusal */
    return result;
}

static enum MHD_Result http_respond(void *arg, struct MHD_Connection *connection, const char *path,
                                    const char *method, const char *version, const char *upload,
                                    size_t *upload_size, void **state)
{
    http_door *d = arg;

    (void)version;
    if (d->has_routes && !(d->has_probes && http_route_find(path)))
        return http_respond_api(d, connection, path, method, upload, upload_size, state);
    enum MHD_Result result = http_own_respond(&d->http->service, connection, path, method);
    http_guard_mark(d->guard, http_guest_of(connection), GUEST_READING);
    return result;
}

static void http_completed(void *arg, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode how)
{
    const http_door *d = arg;

    (void)how;
    http_guard_mark(d->guard, http_guest_of(connection), GUEST_ASKING); /* the next one, perhaps */
    if (!*state)
        return;
    api_call_free(*state);
    *state = NULL;
    http_count_calls(d->http, false);
}

/* The end is told before the socket is closed, so the guard never shuts down one of somebody
 * else. */
static void http_connected(void *arg, struct MHD_Connection *connection, void **guest,
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

static void http_write_metrics(const http *h, FILE *out)
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

static bool http_is_ready(void *arg, char *reason, size_t size)
{
    const http *h = arg;

    return h->asked.is_ready(h->asked.arg, reason, size);
}

/* Those of the worker, and after them those of the server. */
static bool http_metrics(void *arg, char **ret, cb_error *e)
{
    const http *h = arg;
    char *first = NULL, *text = NULL;
    size_t size = 0;

    if (!h->asked.metrics(h->asked.arg, &first, e))
        return false;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        fputs(first, out);
        http_write_metrics(h, out);
        bool written = !ferror(out);
        written = fclose(out) == 0 && written;
        *ret = written ? text : NULL;
        if (!written)
            free(text);
    }
    free(first);
    return (out && *ret) || fail_memory(e);
}

/* ---- listening, with errors that say what to do ---- */

typedef struct {
    const char *key; /* of the configuration, for messages */
    int number;      /* 0: any that is free */
} http_port;

/* What is wrong, and another of which setting may help. */
static const struct {
    int reason;
    const char *problem;
    const char *setting; /* NULL: the port's */
    const char *remark;
} listen_hints[] = {
    { EADDRINUSE, "Another program listens there, perhaps another worker.", NULL,
      ", or 0 for none" },
    { EADDRNOTAVAIL, "This machine has no such address.", "http.bind",
      "; 0.0.0.0 or :: is every address" },
    { EACCES, "Ports below 1024 need a privilege.", NULL, "" },
    { EAFNOSUPPORT, "This machine has no such kind of address.", "http.bind", "" },
};

static bool http_fail_listening(cb_error *e, const char *host, const http_port *port, int reason)
{
    char hint[160] = "";

    for (size_t i = 0; i < sizeof listen_hints / sizeof *listen_hints; i++) {
        if (listen_hints[i].reason == reason)
            snprintf(hint, sizeof hint, "%s Choose another %s%s.", listen_hints[i].problem,
                     listen_hints[i].setting ? listen_hints[i].setting : port->key,
                     listen_hints[i].remark);
    }
    return fail_misuse(e, hint, "cannot listen on http.bind '%s', %s %d: %s", host, port->key,
                       port->number, strerror(reason));
}

static bool http_name_of(int fd, char address[ADDRESS_SIZE])
{
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    char host[64], port[8];

    if (getsockname(fd, (struct sockaddr *)&name, &size) != 0 ||
        getnameinfo((struct sockaddr *)&name, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    snprintf(address, ADDRESS_SIZE, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    return true;
}

static bool http_bind(const struct addrinfo *where, int fd)
{
    const int yes = 1, no = 0;

    /* A restart must not wait for connections of the one before. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
        return false;
    if (where->ai_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0)
        return false;
    return bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
}

/* Listens on an IPv4 or IPv6 address; "::" takes both. The caller closes *ret. `address` gets
 * what it really listens on. */
static bool http_listen(const char *host, const http_port *port, int *ret,
                        char address[ADDRESS_SIZE], cb_error *e)
{
    const struct addrinfo wanted = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                     .ai_socktype = SOCK_STREAM };
    struct addrinfo *where = NULL;
    char service[16];

    snprintf(service, sizeof service, "%d", port->number);
    if (!*host || getaddrinfo(host, service, &wanted, &where) != 0)
        return fail_misuse(
            e,
            "Give an IPv4 or IPv6 address: 127.0.0.1 or ::1 for this machine, 0.0.0.0 or "
            ":: for everybody.",
            "invalid address '%.100s' in http.bind", host);
    int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool fine = fd >= 0 && http_bind(where, fd) && http_name_of(fd, address);
    int reason = errno;
    freeaddrinfo(where);
    if (!fine) {
        if (fd >= 0)
            close(fd);
        return http_fail_listening(e, host, port, reason);
    }
    *ret = fd;
    return true;
}

/* ---- start and end ---- */

/* A path with %00 stays as it is: unescaped it would end there, and be another. */
static size_t http_unescape(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

/* Adopts the socket: it is closed with the server, or here. Twice the connections, for those
 * that the guard has sent away are still there until they are closed. */
static bool http_start_adopt(http_door *d, int fd, cb_error *e)
{
    d->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        http_respond, d, MHD_OPTION_NOTIFY_COMPLETED, http_completed, d,
        MHD_OPTION_NOTIFY_CONNECTION, http_connected, d, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, 2 * MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
        MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_UNESCAPE_CALLBACK, http_unescape, NULL, MHD_OPTION_END);
    if (d->daemon)
        return true;
    close(fd);
    return cb_fail(e, CB_MEMORY, "cannot start the HTTP server: out of threads or memory");
}

static bool http_open_door(http_door *d, const http_options *options, const http_port *port,
                           cb_error *e)
{
    const http_guard_options guard = { .most = MOST_CONNECTIONS,
                                       .seconds = options->request_seconds,
                                       .on_event = options->on_event,
                                       .on_event_arg = options->on_event_arg };
    int fd = -1;

    return http_guard_open(&guard, &d->guard, e) &&
           http_listen(options->bind, port, &fd, d->address, e) && http_start_adopt(d, fd, e);
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
    condition_init(&raw->answered);
    OWNED(http) h = raw;
    h->service.api = options->api;
    h->asked = options->source;
    h->service.source = (http_source){ http_is_ready, http_metrics, h };
    if (options->token_file &&
        !http_token_read("http.token-file", options->token_file, &h->service.token, e))
        return false;
    if (options->responder_token_file &&
        !http_token_read("http.responder-token-file", options->responder_token_file,
                         &h->service.responder_token, e))
        return false;
    h->doors[DOOR_MAIN] = (http_door){
        .http = h, .name = "http", .has_probes = true, .has_routes = h->service.api && !split
    };
    h->doors[DOOR_API] = (http_door){ .http = h, .name = "api", .has_routes = true };
    if (!http_open_door(&h->doors[DOOR_MAIN], options, &port, e) ||
        (split && !http_open_door(&h->doors[DOOR_API], options, &api_port, e)))
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
        api_hurry(h->service.api, seconds);
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
    api_stop(h->service.api); /* nothing is suspended any more */
    /* The server's thread sends what was answered; stopping it would cut that off. */
    int64_t until_ms = monotonic_ms() + SEND_MS;
    bool has_time = true;
    pthread_mutex_lock(&h->lock);
    while (h->n_calls > 0 && has_time)
        has_time = condition_wait(&h->answered, &h->lock, until_ms);
    pthread_mutex_unlock(&h->lock);
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
    api_free(h->service.api);
    pthread_cond_destroy(&h->answered);
    pthread_mutex_destroy(&h->lock);
    free(h->service.token);
    free(h->service.responder_token);
    free(h);
}
