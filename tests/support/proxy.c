/* The proxy is one thread that shovels bytes and follows the server's message boundaries, so that
 * it knows when ReadyForQuery, which comes after the commit, has arrived. */
#include "proxy.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "framing.h"

struct test_proxy {
    char *conninfo;
    char host[256], port[16]; /* of the server */
    int listener;
    int stop[2]; /* a pipe: closed to stop */
    atomic_int moment;
    atomic_int passing; /* answers to forward before one is cut */
    atomic_int cuts;
    pthread_t thread;
};

static int connect_unix(const char *host, const char *port)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/.s.PGSQL.%.15s", host, port);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_server(const test_proxy *p)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    int fd = -1;

    if (p->host[0] == '/')
        return connect_unix(p->host, p->port);
    if (getaddrinfo(p->host, p->port, &hints, &found) != 0)
        return -1;
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

static bool write_all(int fd, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = send(fd, bytes, n, MSG_NOSIGNAL);
        if (written <= 0)
            return false;
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

/* Keeps the last five bytes of the client's stream; true when they are a Sync, which ends a
 * request. */
static bool ends_request(unsigned char last[5], const unsigned char *bytes, size_t n)
{
    size_t taken = n < 5 ? n : 5;

    memmove(last, last + taken, 5 - taken);
    memcpy(last + 5 - taken, bytes + n - taken, taken);
    return memcmp(last, "S\0\0\0\4", 5) == 0;
}

/* Both return false when the connection is over. */
static bool from_client(test_proxy *p, int client, int server, unsigned char last[5])
{
    unsigned char bytes[65536];
    ssize_t n = read(client, bytes, sizeof bytes);

    if (n <= 0)
        return false;
    bool ended = ends_request(last, bytes, (size_t)n);
    if (p->moment == PROXY_CUT_REQUEST) {
        p->cuts++;
        return false;
    }
    if (!write_all(server, bytes, (size_t)n))
        return false;
    if (p->moment == PROXY_CUT_RUNNING && ended) {
        p->cuts++;
        return false;
    }
    return true;
}

static bool from_server(test_proxy *p, int client, int server, framing *f)
{
    unsigned char bytes[65536];
    ssize_t n = read(server, bytes, sizeof bytes);

    if (n <= 0)
        return false;
    bool ready = framing_follow(f, bytes, (size_t)n);
    if (p->moment != PROXY_CUT_ANSWER || p->passing > 0) {
        p->passing -= ready && p->passing > 0;
        return write_all(client, bytes, (size_t)n);
    }
    if (ready)
        p->cuts++;
    return !ready;
}

static void proxy_serve(test_proxy *p, int client)
{
    int server = connect_server(p);
    framing f = { .have = 0 };
    unsigned char last[5] = { 0 };
    bool going = server >= 0;

    while (going) {
        struct pollfd fds[] = { { .fd = client, .events = POLLIN },
                                { .fd = server, .events = POLLIN },
                                { .fd = p->stop[0], .events = POLLIN } };
        if (poll(fds, 3, -1) < 0 || fds[2].revents)
            break;
        if (fds[0].revents)
            going = from_client(p, client, server, last);
        if (going && fds[1].revents)
            going = from_server(p, client, server, &f);
    }
    p->moment = PROXY_FORWARD;
    if (server >= 0)
        close(server);
}

static void *proxy_run(void *arg)
{
    test_proxy *p = arg;

    for (;;) {
        struct pollfd fds[] = { { .fd = p->listener, .events = POLLIN },
                                { .fd = p->stop[0], .events = POLLIN } };
        if (poll(fds, 2, -1) < 0 || fds[1].revents)
            return NULL;
        int client = accept(p->listener, NULL, NULL);
        if (client < 0)
            continue;
        proxy_serve(p, client);
        close(client);
    }
}

test_proxy *test_proxy_start(const char *conninfo)
{
    test_proxy *p = calloc(1, sizeof *p);
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof address;
    PGconn *conn = PQconnectdb(conninfo);

    cr_assert_eq(PQstatus(conn), CONNECTION_OK, "%s", PQerrorMessage(conn));
    snprintf(p->host, sizeof p->host, "%s", PQhost(conn));
    snprintf(p->port, sizeof p->port, "%s", PQport(conn));
    PQfinish(conn);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(p->listener, (struct sockaddr *)&address, sizeof address), 0);
    cr_assert_eq(listen(p->listener, 8), 0);
    cr_assert_eq(getsockname(p->listener, (struct sockaddr *)&address, &length), 0);
    /* The last of two equal keywords counts. Encrypted bytes have no boundaries to follow. */
    cr_assert_gt(asprintf(&p->conninfo,
                          "%s host=127.0.0.1 port=%d sslmode=disable gssencmode=disable", conninfo,
                          ntohs(address.sin_port)),
                 0);
    cr_assert_eq(pipe(p->stop), 0);
    cr_assert_eq(pthread_create(&p->thread, NULL, proxy_run, p), 0);
    return p;
}

void test_proxy_stop(test_proxy *p)
{
    close(p->stop[1]);
    pthread_join(p->thread, NULL);
    close(p->stop[0]);
    close(p->listener);
    free(p->conninfo);
    free(p);
}

const char *test_proxy_conninfo(const test_proxy *p)
{
    return p->conninfo;
}

void test_proxy_cut(test_proxy *p, proxy_moment moment)
{
    p->passing = 0;
    p->moment = moment;
}

void test_proxy_cut_answer(test_proxy *p, int n)
{
    p->passing = n - 1;
    p->moment = PROXY_CUT_ANSWER;
}

int test_proxy_cuts(const test_proxy *p)
{
    return p->cuts;
}
