/* libmicrohttpd, with a thread for each connection. */
#include "simulator_http.h"

#include <arpa/inet.h>
#include <commandbus/handler.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fail.h"
#include "routes.h"

#define MOST_CONNECTIONS  1000u
#define IDLE_SECONDS      120u
#define CONNECTION_MEMORY ((size_t)32 * 1024)
#define STACK_BYTES       ((size_t)256 * 1024)
#define LARGEST_BODY      ((size_t)64 * 1024)

struct http {
    simulator *simulator;
    struct MHD_Daemon *daemon;
    int port;
};

/* A body on its way in. */
typedef struct {
    size_t size;
    bool is_too_large;
    char bytes[];
} upload;

static enum MHD_Result send_answer(struct MHD_Connection *connection, answer *a)
{
    const char *text = json_object_to_json_string_ext(a->body, JSON_C_TO_STRING_PLAIN);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    char seconds[16];

    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (a->retry_after) {
        snprintf(seconds, sizeof seconds, "%d", a->retry_after);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    enum MHD_Result sent = MHD_queue_response(connection, a->status, response);
    MHD_destroy_response(response);
    return sent;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result respond(http *h, struct MHD_Connection *connection, const char *method,
                               const char *path, const upload *body)
{
    request r = {
        .body = body->bytes,
        .body_size = body->size,
        .key = header(connection, "Idempotency-Key"),
        .behaviour = header(connection, "Simulator-Behaviour"),
        .socket =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
    };
    answer a = body->is_too_large ? answer_refusal(413, "TOO_LARGE", "a body has at most 64 KiB")
                                  : routes_answer(h->simulator, method, path, &r);
    enum MHD_Result sent = a.hangs_up ? MHD_NO : send_answer(connection, &a);

    answer_done(&a);
    json_object_put(r.json);
    return sent;
}

/* Called when the headers are there, for each piece of the body, and when it is whole. */
static enum MHD_Result hear(void *arg, struct MHD_Connection *connection, const char *path,
                            const char *method, const char *version, const char *bytes, size_t *n,
                            void **state)
{
    upload *body = *state;

    (void)version;
    if (!body) {
        *state = calloc(1, sizeof(upload) + LARGEST_BODY + 1);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*n == 0)
        return respond(arg, connection, method, path, body);
    if (*n > LARGEST_BODY - body->size) {
        body->is_too_large = true; /* the rest is read and forgotten */
    } else {
        memcpy(body->bytes + body->size, bytes, *n);
        body->size += *n;
    }
    *n = 0;
    return MHD_YES;
}

static void forget(void *arg, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why)
{
    (void)arg;
    (void)connection;
    (void)why;
    free(*state);
    *state = NULL;
}

static bool listen_on(const char *bind_to, int port, int *ret, int *port_ret, cb_error *e)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    socklen_t size = sizeof address;

    if (inet_pton(AF_INET, bind_to, &address.sin_addr) != 1)
        return cb_fail(e, CB_MISUSE, "--bind: '%.60s' is no IPv4 address", bind_to);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) != 0 ||
        bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        cb_fail(e, CB_MISUSE, "cannot listen on %s:%d: %s", bind_to, port, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    *ret = fd;
    *port_ret = ntohs(address.sin_port);
    return true;
}

bool http_start(simulator *s, const char *bind_to, int port, http **ret, cb_error *e)
{
    http *h = calloc(1, sizeof *h);
    int fd = -1;

    if (!h)
        return fail_memory(e);
    h->simulator = s;
    if (!listen_on(bind_to, port, &fd, &h->port, e)) {
        free(h);
        return false;
    }
    h->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC |
            MHD_USE_POLL,
        0, NULL, NULL, hear, h, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE,
        STACK_BYTES, MHD_OPTION_NOTIFY_COMPLETED, forget, NULL, MHD_OPTION_END);
    if (h->daemon) {
        *ret = h;
        return true;
    }
    close(fd);
    free(h);
    return cb_fail(e, CB_MEMORY, "cannot start the HTTP server");
}

int http_port(const http *h)
{
    return h->port;
}

void http_stop(http *h)
{
    if (!h)
        return;
    MHD_stop_daemon(h->daemon);
    free(h);
}
