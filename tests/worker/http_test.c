/* Health and metrics over HTTP, asked by a client that is nothing but a socket. WRK.16. */
#include "http.h"

#include <criterion/criterion.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_bool is_ready_now;
static atomic_bool metrics_fail;

static bool fake_ready(void *arg, char *reason, size_t size)
{
    snprintf(reason, size, "%s", (const char *)arg);
    return is_ready_now;
}

static bool fake_metrics(void *arg, char **ret, cb_error *e)
{
    (void)arg;
    if (metrics_fail)
        return cb_fail(e, CB_MEMORY, "out of memory");
    *ret = strdup("commandbus_ready 1\n");
    return true;
}

static const http_source source = { fake_ready, fake_metrics, "draining" };

static http *open_http(const char *bind, const char *token_file)
{
    http_options options = {
        .bind = bind, .token_file = token_file, .source = source, .request_seconds = 10
    };
    http *h = NULL;
    cb_error e;

    cr_assert(http_open(&options, &h, &e), "%s", e.message);
    return h;
}

/* Connects to "host:port" or "[host]:port". */
static int dial(const char *address)
{
    char host[80], *port;
    struct addrinfo wanted = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *where;

    snprintf(host, sizeof host, "%s", address[0] == '[' ? address + 1 : address);
    port = strrchr(host, ':');
    *port++ = '\0';
    host[strcspn(host, "]")] = '\0';
    cr_assert_eq(getaddrinfo(host, port, &wanted, &where), 0, "%s", address);
    int fd = socket(where->ai_family, SOCK_STREAM, 0);
    cr_assert_eq(connect(fd, where->ai_addr, where->ai_addrlen), 0, "%s", address);
    freeaddrinfo(where);
    return fd;
}

/* Sends a request and reads until the other side closes. Valid until the next call. */
static const char *ask_raw(const char *address, const char *request)
{
    static char text[8192];
    int fd = dial(address);
    size_t n = 0;
    ssize_t got;

    cr_assert_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    while (n < sizeof text - 1 && (got = recv(fd, text + n, sizeof text - 1 - n, 0)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(fd);
    return text;
}

static const char *http_ask(const http *h, const char *method, const char *path, const char *header)
{
    char request[4096];

    snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
             method, path, header);
    return ask_raw(http_address(h), request);
}

static int status_of(const char *answer)
{
    int status = 0;

    cr_assert_eq(sscanf(answer, "HTTP/1.1 %d", &status), 1, "'%s'", answer);
    return status;
}

static const char *http_body(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");

    cr_assert_not_null(end, "'%s'", answer);
    return end + 4;
}

#define expect_http(answer, expected) cr_expect_eq(status_of(answer), (expected), "%s", answer)

Test(http, a_live_worker_says_ok)
{
    OWNED(http) h = open_http("127.0.0.1", NULL);
    const char *answer = http_ask(h, "GET", "/livez", "");

    expect_http(answer, 200);
    cr_expect_str_eq(http_body(answer), "ok\n");
}

Test(http, readiness_follows_the_worker_and_says_why_not)
{
    OWNED(http) h = open_http("127.0.0.1", NULL);

    is_ready_now = true;
    expect_http(http_ask(h, "GET", "/readyz", ""), 200);

    is_ready_now = false;
    const char *answer = http_ask(h, "GET", "/readyz", "");
    expect_http(answer, 503);
    cr_expect_str_eq(http_body(answer), "draining\n");
}

Test(http, metrics_come_in_the_text_format)
{
    OWNED(http) h = open_http("127.0.0.1", NULL);
    const char *answer = http_ask(h, "GET", "/metrics", "");

    expect_http(answer, 200);
    cr_expect_eq(strncmp(http_body(answer), "commandbus_ready 1\n", 19), 0, "%s", answer);
    cr_expect_not_null(strstr(answer, "\ncommandbus_http_connections{port=\"http\"} 1\n"), "%s",
                       answer);
    cr_expect_not_null(strstr(answer, "Content-Type: text/plain; version=0.0.4"), "%s", answer);

    metrics_fail = true;
    expect_http(http_ask(h, "GET", "/metrics", ""), 500);
}

Test(http, head_is_get_without_the_body)
{
    OWNED(http) h = open_http("127.0.0.1", NULL);
    const char *answer = http_ask(h, "HEAD", "/livez", "");

    expect_http(answer, 200);
    cr_expect_str_eq(http_body(answer), "");
    cr_expect_not_null(strstr(answer, "Content-Length: 3"), "%s", answer);
}

Test(http, other_paths_and_methods_are_refused)
{
    OWNED(http) h = open_http("127.0.0.1", NULL);

    expect_http(http_ask(h, "GET", "/", ""), 404);
    expect_http(http_ask(h, "GET", "/metrics/", ""), 404);
    expect_http(http_ask(h, "GET", "/../etc/passwd", ""), 404);
    expect_http(http_ask(h, "DELETE", "/livez", ""), 405);
    const char *answer = http_ask(h, "POST", "/metrics", "Content-Length: 0\r\n");
    expect_http(answer, 405);
    cr_expect_not_null(strstr(answer, "Allow: GET, HEAD"), "%s", answer);
    expect_http(http_ask(h, "GET", "/livez?verbose=1", ""), 200);
}

/* A file with this content; its name is valid until the next call. */
static const char *file_with(const char *content, size_t n)
{
    static char name[64];

    snprintf(name, sizeof name, "token.XXXXXX");
    int fd = mkstemp(name);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, content, n), (ssize_t)n);
    close(fd);
    return name;
}

Test(http, metrics_need_the_token_and_probes_do_not)
{
    const char *file = file_with(" s3cret-Token \n", 15);
    OWNED(http) h = open_http("127.0.0.1", file);
    unlink(file);

    is_ready_now = true;
    expect_http(http_ask(h, "GET", "/livez", ""), 200);
    expect_http(http_ask(h, "GET", "/readyz", ""), 200);
    expect_http(http_ask(h, "GET", "/metrics", "Authorization: Bearer s3cret-Token\r\n"), 200);
    expect_http(http_ask(h, "GET", "/metrics", "authorization: bearer s3cret-Token\r\n"), 200);

    const char *const wrong[] = { "",
                                  "Authorization: Bearer\r\n",
                                  "Authorization: Bearer \r\n",
                                  "Authorization: Bearer s3cret-Toke\r\n",
                                  "Authorization: Bearer s3cret-Tokens3cret-Token\r\n",
                                  "Authorization: Bearer s3cret-TokenX\r\n",
                                  "Authorization: Bearer S3CRET-TOKEN\r\n",
                                  "Authorization: Basic s3cret-Token\r\n",
                                  "Authorization: s3cret-Token\r\n",
                                  "X: Bearer s3cret-Token\r\n" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *answer = http_ask(h, "GET", "/metrics", wrong[i]);
        expect_http(answer, 401);
        cr_expect_not_null(strstr(answer, "WWW-Authenticate: Bearer"), "%s", answer);
        cr_expect_null(strstr(answer, "commandbus_ready"), "%s", answer);
    }
    expect_http(http_ask(h, "HEAD", "/metrics", ""), 401);
}

/* http_open refuses: its message and its hint match. */
static void expect_http_refused(const http_options *options, const char *message, const char *hint)
{
    http *h = NULL;
    cb_error e = { 0 };

    cr_assert_not(http_open(options, &h, &e));
    cr_expect_eq(e.code, CB_MISUSE);
    cr_expect_null(h);
    cr_expect_not_null(strstr(e.message, message), "%s", e.message);
    cr_expect_not_null(strstr(e.hint, hint), "%s", e.hint);
}

Test(http, a_token_file_must_hold_a_token)
{
    char long_one[2000];
    memset(long_one, 'x', sizeof long_one);
    const struct {
        const char *content;
        size_t n;
    } bad[] = { { "", 0 },
                { "\n", 1 },
                { "two words\n", 10 },
                { "nul\0inside", 10 },
                { "\xC3\xA9", 2 },
                { long_one, sizeof long_one } };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *file = file_with(bad[i].content, bad[i].n);
        http_options options = { .bind = "127.0.0.1", .token_file = file, .source = source };
        expect_http_refused(&options, "holds no token", "one line");
        unlink(file);
    }
    http_options missing = { .bind = "127.0.0.1", .token_file = "no/such/file", .source = source };
    expect_http_refused(&missing, "cannot read http.token-file 'no/such/file': No such file",
                        "one line");
    http_options folder = { .bind = "127.0.0.1", .token_file = ".", .source = source };
    expect_http_refused(&folder, "cannot read http.token-file '.': Is a directory", "one line");
}

Test(http, a_port_in_use_is_refused_with_what_to_do)
{
    OWNED(http) first = open_http("127.0.0.1", NULL);
    int port = atoi(strrchr(http_address(first), ':') + 1);
    http_options second = { .bind = "127.0.0.1", .port = port, .source = source };

    expect_http_refused(&second, "Address already in use", "Choose another http.port, or 0");
    expect_http(http_ask(first, "GET", "/livez", ""), 200);
}

Test(http, an_address_must_be_one_of_this_machine)
{
    const char *const bad[] = { "", "localhost", "127.0.0.1:80", "300.1.1.1", "[::1]" };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        http_options options = { .bind = bad[i], .source = source };
        expect_http_refused(&options, "invalid address", "127.0.0.1");
    }
    http_options foreign = { .bind = "192.0.2.1", .source = source };
    expect_http_refused(&foreign, "Cannot assign requested address", "http.bind");
}

Test(http, serves_ipv6_too)
{
    OWNED(http) h = open_http("::1", NULL);

    cr_expect_eq(strncmp(http_address(h), "[::1]:", 6), 0, "%s", http_address(h));
    expect_http(http_ask(h, "GET", "/livez", ""), 200);
}

Test(http, the_ipv6_address_of_everybody_serves_ipv4_too)
{
    OWNED(http) h = open_http("::", NULL);
    char address[64];

    snprintf(address, sizeof address, "127.0.0.1%s", strrchr(http_address(h), ':'));
    expect_http(ask_raw(address, "GET /livez HTTP/1.0\r\n\r\n"), 200);
}

Test(http, silent_clients_do_not_keep_the_probes_out, .timeout = 200)
{
    OWNED(http) h = open_http("127.0.0.1", NULL);
    int silent[100];

    /* More than may be connected at once; each has begun a request and says no more. */
    for (int i = 0; i < 100; i++) {
        silent[i] = dial(http_address(h));
        cr_assert_eq(send(silent[i], "GET /li", 7, MSG_NOSIGNAL), 7);
    }
    expect_http(http_ask(h, "GET", "/livez", ""), 200);
    for (int i = 0; i < 100; i++)
        close(silent[i]);
}

Test(http, rubbish_is_survived)
{
    OWNED(http) h = open_http("127.0.0.1", NULL);
    char huge[20000] = "GET /";

    memset(huge + 5, 'x', sizeof huge - 6);
    memcpy(huge + sizeof huge - 5, "\r\n\r\n", 5);
    ask_raw(http_address(h), "\r\n\r\n\x01\x02\xff rubbish\r\n\r\n");
    int fd = dial(http_address(h));
    send(fd, huge, sizeof huge - 1, MSG_NOSIGNAL);
    close(fd);

    expect_http(http_ask(h, "GET", "/livez", ""), 200);
}

static void *ask_many(void *h)
{
    char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
    size_t bad = 0;

    for (int i = 0; i < 100; i++) {
        char text[256] = "";
        int fd = dial(http_address(h));
        bad += send(fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0;
        bad += recv(fd, text, sizeof text - 1, 0) <= 0 || !strstr(text, " 200 ");
        close(fd);
    }
    return (void *)bad;
}

Test(http, answers_many_clients_at_once)
{
    OWNED(http) h = open_http("127.0.0.1", NULL);
    pthread_t threads[4];
    void *bad;

    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, ask_many, h), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &bad);
        cr_expect_null(bad);
    }
}
