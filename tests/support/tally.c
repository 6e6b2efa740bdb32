/* tests/tools/tally.c as a child of the test: somebody to call, who counts. */
#include "tally.h"

#include "claims.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

test_tally tally_start(void)
{
    char program[512], line[64];
    test_tally t = { 0 };
    int ends[2];

    snprintf(program, sizeof program, "%s/tests/tally", getenv("COMMANDBUS_BUILD_DIR"));
    cr_assert_eq(pipe(ends), 0);
    t.pid = fork();
    cr_assert_geq(t.pid, 0);
    if (t.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* not longer than a test that fails */
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    cr_assert(out && fgets(line, sizeof line, out) && sscanf(line, "port %d", &t.port) == 1,
              "%s says no port", program);
    fclose(out);
    return t;
}

void tally_stop(const test_tally *t)
{
    int status;

    kill(t->pid, SIGTERM);
    cr_expect_eq(waitpid(t->pid, &status, 0), t->pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "tally ended with %d", status);
}

long tally_number(const test_tally *t, const char *name)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons((uint16_t)t->port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    char report[512], key[32];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    cr_assert_eq(send(fd, "STATS\n", 6, MSG_NOSIGNAL), 6);
    ssize_t n = recv(fd, report, sizeof report - 1, MSG_WAITALL);
    close(fd);
    report[n > 0 ? n : 0] = '\0';
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(report, key);
    cr_assert(at, "tally says no %s: %s", name, report);
    return strtol(at + strlen(key), NULL, 10);
}

void tally_await(const test_tally *t, const char *name, long expected)
{
    long found = -1;

    for (double end = test_clock() + patience_seconds; test_clock() < end;) {
        found = tally_number(t, name);
        if (found == expected)
            return;
        nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
    }
    cr_assert_fail("tally's %s is %ld and not %ld", name, found, expected);
}
