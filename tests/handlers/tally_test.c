/* The tally: what the limit is measured with must itself be right. */
#include "tally.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static test_tally tally;

static void open_tally(void)
{
    tally = tally_start();
}

static void close_tally(void)
{
    tally_stop(&tally);
}

TestSuite(tally, .init = open_tally, .fini = close_tally);

static int connect_to_tally(void)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons((uint16_t)tally.port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_geq(fd, 0);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* A call that has been counted. */
static int make_call(const char *line)
{
    char answer[3];
    int fd = connect_to_tally();

    cr_assert_eq(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
    cr_assert_eq(recv(fd, answer, sizeof answer, MSG_WAITALL), 3);
    cr_assert_eq(memcmp(answer, "ok\n", 3), 0);
    return fd;
}

static void tell_tally(const char *line)
{
    char report[256];
    int fd = connect_to_tally();

    cr_assert_eq(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
    cr_assert_gt(recv(fd, report, sizeof report, MSG_WAITALL), 0);
    close(fd);
}

/* Ends a call, and returns when it is not counted any more. */
static void end_call(int fd)
{
    char nothing;

    cr_expect_eq(shutdown(fd, SHUT_WR), 0);
    cr_expect_eq(recv(fd, &nothing, 1, 0), 0);
    close(fd);
}

#define expect_tally(name, expected) cr_expect_eq(tally_number(&tally, name), expected, name)

Test(tally, counts_what_is_open_and_the_most_that_ever_was)
{
    int a = make_call("one 1\n"), b = make_call("two 1\n");
    expect_tally("open", 2);
    end_call(a);
    expect_tally("open", 1);
    end_call(make_call("three 1\n"));
    end_call(b);

    expect_tally("open", 0);
    expect_tally("max", 2);
    expect_tally("total", 3);
}

Test(tally, names_lines_and_commands_that_came_again)
{
    end_call(make_call("one 1\n"));
    end_call(make_call("one 2\n"));
    end_call(make_call("one 2\n"));
    end_call(make_call("one 2\n"));
    end_call(make_call("two 1\n"));

    expect_tally("keys", 3);
    expect_tally("repeated", 1);
    expect_tally("commands", 2);
    expect_tally("commands_repeated", 1);
}

Test(tally, does_not_count_callers_that_only_ask_or_stay_silent)
{
    int silent = connect_to_tally(), half = connect_to_tally();
    cr_assert_eq(send(half, "STA", 3, MSG_NOSIGNAL), 3);

    expect_tally("open", 0);
    expect_tally("total", 0);

    cr_assert_eq(send(half, "TS\n", 3, MSG_NOSIGNAL), 3);
    char first;
    cr_expect(recv(half, &first, 1, 0) == 1 && first == '{');
    close(half);
    close(silent);
}

Test(tally, reset_forgets_the_most_but_not_what_is_open)
{
    int a = make_call("one 1\n");
    end_call(make_call("two 1\n"));
    expect_tally("max", 2);

    tell_tally("RESET\n");

    expect_tally("max", 1);
    end_call(a);
}

static int begin_call(const char *line)
{
    int fd = connect_to_tally();

    cr_assert_eq(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
    return fd;
}

Test(tally, shut_counts_calls_and_answers_them_once_it_is_open)
{
    char answer[3];

    tell_tally("SHUT\n");
    int waits = begin_call("one 1\n"), leaves = begin_call("two 1\n");
    tally_await(&tally, "open", 2);
    cr_expect_lt(recv(waits, answer, sizeof answer, MSG_DONTWAIT), 0);
    end_call(leaves);
    expect_tally("open", 1);

    tell_tally("OPEN\n");
    cr_expect_eq(recv(waits, answer, sizeof answer, MSG_WAITALL), 3);
    end_call(waits);
    end_call(make_call("three 1\n"));
    expect_tally("max", 2);
}

/* The kernel closes the connections of a killed worker: RL.1 is measured from outside. */
Test(tally, notices_that_a_caller_was_killed)
{
    int told[2];
    cr_assert_eq(pipe(told), 0);
    pid_t caller = fork();
    if (caller == 0) {
        make_call("doomed 1\n");
        if (write(told[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    char x;
    cr_assert_eq(read(told[0], &x, 1), 1);
    expect_tally("open", 1);

    kill(caller, SIGKILL);

    cr_assert_eq(waitpid(caller, NULL, 0), caller);
    tally_await(&tally, "open", 0);
    expect_tally("max", 1);
}

Test(tally, hangs_up_on_a_line_that_does_not_end)
{
    char endless[300], answer;
    int fd = connect_to_tally();
    memset(endless, 'x', sizeof endless);

    cr_assert_gt(send(fd, endless, sizeof endless, MSG_NOSIGNAL), 0);

    cr_expect_leq(recv(fd, &answer, 1, 0), 0);
    close(fd);
    expect_tally("total", 0);
}

Test(tally, counts_thousands)
{
    enum {
        THOUSANDS = 3000
    };
    static int fds[THOUSANDS];
    struct rlimit files;
    char line[32];
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    cr_assert(setrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max > THOUSANDS + 100);

    for (int i = 0; i < THOUSANDS; i++) {
        snprintf(line, sizeof line, "command-%d 1\n", i);
        fds[i] = make_call(line);
    }
    expect_tally("open", THOUSANDS);
    for (int i = 0; i < THOUSANDS; i++)
        end_call(fds[i]);

    expect_tally("open", 0);
    expect_tally("max", THOUSANDS);
    expect_tally("keys", THOUSANDS);
    expect_tally("repeated", 0);
}
