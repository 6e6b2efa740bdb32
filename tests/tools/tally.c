/* tally [port]: somebody for the sample handler Hold to call, who counts how many calls are open.
 *
 * Listens on 127.0.0.1, on a free port unless one is given, and prints `port N`. The first line
 * of a connection decides:
 *
 *     STATS    answered with one line of JSON, then closed
 *     RESET    the same, after `max` went down to what is open now
 *     SHUT     the same; calls that come from now on are counted, and answered only after
 *     OPEN     the same; whoever waits is answered now
 *     other    a call: counted as open, answered "ok\n", no more counted once the caller ends it or
 *              dies, and only then closed
 *
 * {"open": calls open now, "max": the most there ever were, "total": calls ever, "keys": different
 * first lines, "repeated": those that came more than once, "commands": different first words
 * of them, "commands_repeated": likewise}. SIGTERM ends it. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tally_keys.h"

typedef struct connection connection;

struct connection {
    int fd;
    bool is_counted;
    size_t used;
    char line[200];
    connection *next; /* of those that wait for the gate */
};

typedef struct {
    int epoll, listener, signals;
    size_t open, max, total;
    keys lines, commands;
    bool is_shut;
    connection *waiting;
} tally;

static void give_up(const char *what)
{
    fprintf(stderr, "tally: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void watch(const tally *t, int fd, void *who)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = who };

    if (epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        give_up("epoll");
}

static void hang_up(tally *t, connection *c)
{
    for (connection **at = &t->waiting; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    t->open -= c->is_counted;
    close(c->fd); /* tells a caller that waits for it that the call is not counted any more */
    free(c);
}

static void say(const connection *c, const char *text)
{
    size_t length = strlen(text);

    /* A caller who has gone in the meantime is seen at the next read. */
    if (send(c->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) < (ssize_t)length)
        shutdown(c->fd, SHUT_RDWR);
}

static void answer(tally *t, connection *c)
{
    if (!t->is_shut) {
        say(c, "ok\n");
        return;
    }
    c->next = t->waiting;
    t->waiting = c;
}

static void move_gate(tally *t, bool is_shut)
{
    t->is_shut = is_shut;
    for (connection *c = t->waiting; c && !is_shut; c = t->waiting) {
        t->waiting = c->next;
        say(c, "ok\n");
    }
}

static void count_call(tally *t, connection *c)
{
    if (!keys_count(&t->lines, c->line, strlen(c->line)) ||
        !keys_count(&t->commands, c->line, strcspn(c->line, " ")))
        give_up("memory");
    c->is_counted = true;
    t->total++;
    t->open++;
    if (t->open > t->max)
        t->max = t->open;
    answer(t, c);
}

/* True when the connection has been answered and is to be closed. */
static bool report(tally *t, const connection *c)
{
    char text[256];

    if (strcmp(c->line, "RESET") == 0)
        t->max = t->open;
    else if (strcmp(c->line, "SHUT") == 0 || strcmp(c->line, "OPEN") == 0)
        move_gate(t, c->line[0] == 'S');
    else if (strcmp(c->line, "STATS") != 0)
        return false;
    snprintf(text, sizeof text,
             "{\"open\":%zu,\"max\":%zu,\"total\":%zu,\"keys\":%zu,\"repeated\":%zu,"
             "\"commands\":%zu,\"commands_repeated\":%zu}\n",
             t->open, t->max, t->total, t->lines.n, t->lines.repeated, t->commands.n,
             t->commands.repeated);
    say(c, text);
    return true;
}

/* What a connection has sent: its line, then nothing until it ends. */
static void hear(tally *t, connection *c)
{
    char rest[256];
    bool in_line = !c->is_counted;
    ssize_t n = in_line ? recv(c->fd, c->line + c->used, sizeof c->line - c->used - 1, MSG_DONTWAIT)
                        : recv(c->fd, rest, sizeof rest, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(t, c);
        return;
    }
    if (!in_line)
        return;
    c->used += (size_t)n;
    c->line[c->used] = '\0';
    char *end = strchr(c->line, '\n');
    if (end) {
        *end = '\0';
        if (end > c->line && end[-1] == '\r')
            end[-1] = '\0';
        if (report(t, c))
            hang_up(t, c);
        else
            count_call(t, c);
    } else if (c->used == sizeof c->line - 1) {
        hang_up(t, c);
    }
}

static void accept_all(tally *t)
{
    for (;;) {
        int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0 && errno == EAGAIN)
            return;
        connection *c = fd < 0 ? NULL : calloc(1, sizeof *c);
        if (!c)
            give_up("accept");
        c->fd = fd;
        watch(t, fd, c);
    }
}

static int listen_on(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) != 0 ||
        bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        give_up("listen");
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void allow_many_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Until SIGTERM or SIGINT. */
static void serve(tally *t)
{
    struct epoll_event events[256];

    for (;;) {
        int n = epoll_wait(t->epoll, events, 256, -1);
        if (n < 0 && errno != EINTR)
            give_up("epoll");
        for (int i = 0; i < n; i++) {
            void *who = events[i].data.ptr;
            if (who == &t->signals)
                return;
            if (who == &t->listener)
                accept_all(t);
            else
                hear(t, who);
        }
    }
}

int main(int argc, char **argv)
{
    tally t = { .epoll = epoll_create1(EPOLL_CLOEXEC) };
    sigset_t ends;

    allow_many_files();
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    t.signals = signalfd(-1, &ends, SFD_CLOEXEC);
    t.listener = listen_on(argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0);
    watch(&t, t.signals, &t.signals);
    watch(&t, t.listener, &t.listener);
    serve(&t);
    _exit(0); /* the kernel takes everything back, also connections that only epoll knows */
}
