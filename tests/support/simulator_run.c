/* handlers/simulator as a child of the test. */
#include "simulator_run.h"

#include "claims.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <json-c/json_tokener.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_ARGUMENTS = 16,
    LARGEST_ANSWER = 1024 * 1024
};

static void become(const char *database_url, const char *const arguments[])
{
    char program[512];
    const char *argv[MOST_ARGUMENTS + 1] = { program };
    size_t n = 1;

    snprintf(program, sizeof program, "%s/bin/commandbus-simulator",
             getenv("COMMANDBUS_BUILD_DIR"));
    for (; arguments && *arguments && n < MOST_ARGUMENTS; arguments++)
        argv[n++] = *arguments;
    if (database_url)
        setenv("COMMANDBUS_DATABASE_URL", database_url, 1);
    else
        unsetenv("COMMANDBUS_DATABASE_URL");
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* not longer than a test that fails */
    execv(program, (char *const *)(void *)argv);
    _exit(127);
}

test_simulator simulator_start(const char *database_url, const char *const arguments[])
{
    test_simulator s = { 0 };
    char line[64];
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    s.pid = fork();
    cr_assert_geq(s.pid, 0);
    if (s.pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        become(database_url, arguments);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    cr_assert(out && fgets(line, sizeof line, out) && sscanf(line, "port %d", &s.port) == 1,
              "the simulator says no port");
    fclose(out);
    snprintf(s.url, sizeof s.url, "http://127.0.0.1:%d", s.port);
    return s;
}

void simulator_stop(const test_simulator *s)
{
    int status;

    kill(s->pid, SIGTERM);
    cr_expect_eq(waitpid(s->pid, &status, 0), s->pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the simulator ended with %d", status);
}

/* HTTP/1.0: the answer ends with the connection. */
static int send_request(int fd, const simulator_call *c)
{
    size_t size = c->body ? strlen(c->body) : 0;
    FILE *out = fdopen(dup(fd), "w");

    if (!out)
        return -1;
    fprintf(out, "%s %s HTTP/1.0\r\nContent-Length: %zu\r\n", c->method, c->path, size);
    if (c->key)
        fprintf(out, "Idempotency-Key: %s\r\n", c->key);
    if (c->behaviour)
        fprintf(out, "Simulator-Behaviour: %s\r\n", c->behaviour);
    fprintf(out, "\r\n%s", c->body ? c->body : "");
    return fclose(out);
}

static char *simulator_receive(int fd)
{
    char *text = calloc(1, LARGEST_ANSWER + 1);
    size_t size = 0;
    ssize_t n = 0;

    while (text && size < LARGEST_ANSWER &&
           (n = recv(fd, text + size, LARGEST_ANSWER - size, 0)) > 0)
        size += (size_t)n;
    return text;
}

/* The whole text of the answer; the caller frees it. NULL: there was none. */
static char *exchange(const test_simulator *s, const simulator_call *c)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons((uint16_t)s->port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int ms = c->patience_ms ? c->patience_ms : (int)(patience_seconds * 1000);
    const struct timeval patience = { ms / 1000, ms % 1000 * 1000 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *text = NULL;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        send_request(fd, c) == 0)
        text = simulator_receive(fd);
    close(fd);
    return text;
}

static const char *simulator_body(const char *text)
{
    const char *at = text ? strstr(text, "\r\n\r\n") : NULL;

    return at ? at + 4 : "";
}

simulator_answer simulator_try(const test_simulator *s, const simulator_call *c)
{
    simulator_answer a = { 0 };
    char *text = exchange(s, c);
    const char *wait = text ? strcasestr(text, "\r\nRetry-After: ") : NULL;

    if (text)
        sscanf(text, "HTTP/1.%*c %d", &a.status);
    if (wait)
        a.retry_after = (int)strtol(wait + strlen("\r\nRetry-After: "), NULL, 10);
    snprintf(a.body, sizeof a.body, "%s", simulator_body(text));
    free(text);
    return a;
}

json_object *simulator_ask(const test_simulator *s, const char *method, const char *path,
                           const char *body)
{
    char *text = exchange(s, &(simulator_call){ .method = method, .path = path, .body = body });
    json_object *json = json_tokener_parse(simulator_body(text));

    cr_assert(text && json && strncmp(text + strlen("HTTP/1.x "), "20", 2) == 0, "%s %s: %s",
              method, path, text ? text : "no answer");
    free(text);
    return json;
}

void simulator_behave(const test_simulator *s, const char *place, const char *behaviour)
{
    char path[64];

    snprintf(path, sizeof path, "/behaviour/%s", place);
    json_object_put(simulator_ask(s, "PUT", path, behaviour));
}

long simulator_number(const test_simulator *s, const char *path)
{
    json_object *stats = simulator_ask(s, "GET", "/stats", NULL), *at = stats;
    char parts[128], *rest = parts, *part;

    snprintf(parts, sizeof parts, "%s", path);
    while ((part = strsep(&rest, "/")))
        cr_assert(json_object_object_get_ex(at, part, &at), "the stats have no %s", path);
    long number = (long)json_object_get_int64(at);
    json_object_put(stats);
    return number;
}

void simulator_await(const test_simulator *s, const char *path, long expected)
{
    long found = -1;

    for (double end = test_clock() + patience_seconds; test_clock() < end;) {
        found = simulator_number(s, path);
        if (found == expected)
            return;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    cr_assert_fail("the simulator's %s is %ld and not %ld", path, found, expected);
}
