/* siege PORT KIND CONNECTIONS SECONDS [ADDRESSES]: clients that take their time with an HTTP server
 * on 127.0.0.1.
 *
 * Keeps so many connections open, from 127.0.0.1 or from so many addresses (127.0.0.1, 127.0.0.2,
 * …), and opens another soon for each that the server closes. What each of them does, KIND says:
 *   head   sends the head of a request, a byte a second
 *   body   sends a head at once and the body of POST /desk/echo a byte a second
 *   idle   asks GET /desk/a/parts/b once and keeps the connection
 *   sip    asks POST /desk/echo for large answers, again and again, and reads them a little at
 *          a time
 *   mixed  all four, in turn
 * Prints `besieging` when all are connected, and `opened N closed N` at the end, after SECONDS or
 * on SIGTERM. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST = 900, /* below the usual limit of open files */
    ROUND_MS = 1000,
    REST_MS = 200, /* until it comes back */
    LARGE = 60000, /* bytes of a body */
    SIPPED = 2048  /* bytes a second */
};

typedef enum {
    HEAD,
    BODY,
    IDLE,
    SIP,
    KINDS
} kind;

static const char *const kind_names[] = { "head", "body", "idle", "sip" };
static const char *const first_words[] = {
    "GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    ("POST /desk/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
     "Content-Length: 60000\r\n\r\n{\"a\": \""),
    "GET /desk/a/parts/b HTTP/1.1\r\nHost: x\r\n\r\n",
    "",
};
static char large_request[LARGE + 200];

static volatile sig_atomic_t is_over;
static struct sockaddr_in server = { .sin_family = AF_INET };
static unsigned n_addresses = 1;
static long n_opened, n_closed;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* -1 when the server does not take it. */
static int dial(kind what)
{
    const int little = 4096;
    struct sockaddr_in own = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(n_opened % n_addresses));
    if (fd < 0)
        return -1;
    if (what == SIP)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    if (bind(fd, (struct sockaddr *)&own, sizeof own) != 0 ||
        (connect(fd, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS)) {
        close(fd);
        return -1;
    }
    n_opened++;
    return fd;
}

static void make_large_request(void)
{
    int n = snprintf(large_request, sizeof large_request,
                     "POST /desk/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     "Content-Length: %d\r\n\r\n{\"a\": \"",
                     LARGE);

    memset(large_request + n, 'x', LARGE - 9);
    memcpy(large_request + n + LARGE - 9, "\"}", 2);
}

/* Part of a request may be all that goes out, which is as bad as any other. */
static bool sip(int fd)
{
    char bytes[SIPPED];
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);

    if (n == 0 || (n < 0 && errno != EAGAIN))
        return false;
    return send(fd, large_request, strlen(large_request), MSG_NOSIGNAL) > 0 || errno == EAGAIN;
}

/* The next of what it has to say. False when nobody listens any more. */
static bool speak(int fd, kind what, bool first)
{
    const char *words = first ? first_words[what] : "x";

    if (what == SIP)
        return sip(fd);
    if (what == IDLE && !first)
        return true;
    return send(fd, words, strlen(words), MSG_NOSIGNAL) >= 0 || errno == EAGAIN;
}

/* Whether the server has closed it. What it said is read, by those who sip elsewhere. */
static bool is_closed(int fd, kind what, short events)
{
    char bytes[4096];

    if (events & (POLLERR | POLLHUP))
        return true;
    if (what == SIP || !(events & POLLIN))
        return false;
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static kind kind_of(const char *name, int number)
{
    for (int k = 0; k < KINDS; k++) {
        if (strcmp(name, kind_names[k]) == 0)
            return (kind)k;
    }
    return (kind)(number % KINDS);
}

static void besiege(const char *name, int n, int64_t until_ms)
{
    static struct pollfd guests[MOST];
    static int64_t speaks_ms[MOST]; /* 0: has not spoken yet */
    static int64_t comes_ms[MOST];
    bool told = false;

    for (int i = 0; i < n; i++)
        guests[i].fd = -1;
    while (!is_over && now_ms() < until_ms) {
        int n_speaking = 0;
        for (int i = 0; i < n; i++) {
            kind what = kind_of(name, i);
            if (guests[i].fd < 0 && now_ms() >= comes_ms[i]) {
                guests[i].fd = dial(what);
                speaks_ms[i] = 0;
            }
            /* Until it is connected, and from then on what comes. */
            guests[i].events = speaks_ms[i] == 0 ? POLLOUT : what == SIP ? 0 : POLLIN;
        }
        poll(guests, (nfds_t)n, 50);
        for (int i = 0; i < n; i++) {
            kind what = kind_of(name, i);
            int64_t now = now_ms();
            bool closed = guests[i].fd >= 0 && is_closed(guests[i].fd, what, guests[i].revents);
            bool speaks = guests[i].fd >= 0 && !closed &&
                          (speaks_ms[i] ? now >= speaks_ms[i] : guests[i].revents & POLLOUT);
            if (speaks) {
                closed = !speak(guests[i].fd, what, speaks_ms[i] == 0);
                speaks_ms[i] = now + ROUND_MS;
            }
            if (closed) {
                close(guests[i].fd);
                guests[i].fd = -1;
                comes_ms[i] = now + REST_MS;
                n_closed++;
            }
            n_speaking += speaks_ms[i] != 0;
        }
        if (!told && (n_speaking == n || n_closed > n)) {
            told = true;
            printf("besieging\n");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    int port = argc > 1 ? atoi(argv[1]) : 0, n = argc > 3 ? atoi(argv[3]) : 0;
    int seconds = argc > 4 ? atoi(argv[4]) : 0;

    n_addresses = argc > 5 ? (unsigned)atoi(argv[5]) : 1;
    if (port <= 0 || port > 65535 || n <= 0 || n > MOST || seconds <= 0 || n_addresses < 1 ||
        n_addresses > 200) {
        fprintf(stderr, "usage: siege PORT head|body|idle|sip|mixed CONNECTIONS SECONDS "
                        "[ADDRESSES]\n");
        return 2;
    }
    server.sin_port = htons((uint16_t)port);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    make_large_request();
    signal(SIGTERM, end);
    besiege(argv[2], n, now_ms() + (int64_t)seconds * 1000);
    printf("opened %ld closed %ld\n", n_opened, n_closed);
    return 0;
}
