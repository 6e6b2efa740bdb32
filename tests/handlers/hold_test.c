/* The sample handler Hold: a call that whoever is called can count. */
#include "expect.h"
#include "parallel.h"
#include "tally.h"
#include "test_handler.h"

#include <commandbus/host.h>
#include <commandbus/set.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static cb_set *sample;
static cb_handler_fn *hold;

static void load_hold(void)
{
    cb_error e = { 0 };

    expect_ok(cb_set_load(getenv("COMMANDBUS_MODULES_DIR"), "sample", &sample, &e), e);
    hold = test_handler(sample, "Hold");
}

static void unload_hold(void)
{
    cb_set_free(sample);
}

TestSuite(hold, .init = load_hold, .fini = unload_hold);

static cb_command hold_command(const char *data)
{
    return (cb_command){ .command_id = cb_uuid_new(),
                         .domain = "sample",
                         .command_type = "Hold",
                         .data = data,
                         .attempt = 1,
                         .max_attempts = 3 };
}

typedef struct {
    char data[64];
    atomic_int succeeded;
} callers;

static void call_hold(size_t i, void *arg)
{
    callers *all = arg;
    cb_command c = hold_command(all->data);
    cb_context *ctx = NULL;
    cb_settlement out;

    c.attempt = (int)i + 1;
    if (!cb_context_open(&c, NULL, NULL, &ctx, NULL))
        return;
    cb_context_run(ctx, hold, 0, &out);
    all->succeeded += out.outcome == CB_SUCCESS;
    cb_context_free(ctx);
}

/* RL.1: the API itself counts the calls. */
Test(hold, is_an_open_call_for_as_long_as_it_runs)
{
    test_tally t = tally_start();
    callers all = { .succeeded = 0 };
    snprintf(all.data, sizeof all.data, "{\"port\": %d, \"ms\": 500}", t.port);

    parallel_run(8, call_hold, &all);

    cr_expect_eq(all.succeeded, 8);
    cr_expect_eq(tally_number(&t, "max"), 8);
    cr_expect_eq(tally_number(&t, "open"), 0, "a call was counted after its handler returned");
    parallel_run(8, call_hold, &all);
    cr_expect_eq(tally_number(&t, "max"), 8);
    cr_expect_eq(tally_number(&t, "total"), 16);
    cr_expect_eq(tally_number(&t, "keys"), 16);
    cr_expect_eq(tally_number(&t, "repeated"), 0);
    tally_stop(&t);
}

/* A server that takes one call and is slow to answer it. */
typedef struct {
    int listener;
    char line[64];
    bool waited; /* the handler did not return before the callee had closed */
    atomic_bool returned;
    cb_command command;
    cb_outcome outcome;
} slow_callee;

static void call_or_answer(size_t i, void *arg)
{
    slow_callee *s = arg;

    if (i == 0) {
        cb_context *ctx = NULL;
        cb_settlement out = { .outcome = CB_PERMANENT };
        if (cb_context_open(&s->command, NULL, NULL, &ctx, NULL))
            cb_context_run(ctx, hold, 0, &out);
        s->outcome = out.outcome;
        s->returned = true;
        cb_context_free(ctx);
        return;
    }
    int fd = accept(s->listener, NULL, NULL);
    ssize_t n = recv(fd, s->line, sizeof s->line - 1, 0);
    s->line[n > 0 ? n : 0] = '\0';
    bool ended = send(fd, "ok\n", 3, MSG_NOSIGNAL) == 3 && recv(fd, &(char){ 0 }, 1, 0) == 0;
    for (int j = 0; j < 20 && !s->returned; j++)
        nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
    s->waited = ended && !s->returned;
    close(fd);
}

/* So that what is counted at once is never more than there are handlers running. */
Test(hold, returns_only_when_its_call_is_not_counted_any_more)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    char data[64], line[64];
    slow_callee s = { .listener = socket(AF_INET, SOCK_STREAM, 0) };
    cr_assert(bind(s.listener, (struct sockaddr *)&address, size) == 0 &&
              listen(s.listener, 1) == 0 &&
              getsockname(s.listener, (struct sockaddr *)&address, &size) == 0);
    snprintf(data, sizeof data, "{\"port\": %d, \"ms\": 1}", ntohs(address.sin_port));
    s.command = hold_command(data);

    parallel_run(2, call_or_answer, &s);

    cr_expect(s.waited);
    cr_expect_eq(s.outcome, CB_SUCCESS);
    snprintf(line, sizeof line, "%s 1\n", s.command.command_id.text);
    cr_expect_str_eq(s.line, line);
    close(s.listener);
}

Test(hold, is_transient_when_nobody_answers)
{
    test_tally t = tally_start();
    OWNED(cb_context) ctx = NULL;
    cb_settlement out;
    char data[64];
    snprintf(data, sizeof data, "{\"port\": %d, \"ms\": 1}", t.port);
    cb_command c = hold_command(data);
    tally_stop(&t);
    cr_assert(cb_context_open(&c, NULL, NULL, &ctx, NULL));

    cb_context_run(ctx, hold, 0, &out);

    cr_expect_eq(out.outcome, CB_TRANSIENT);
    cr_expect_str_eq(out.error_code, "CALL_FAILED");
    cr_expect(strstr(out.error_message, "Connection refused"), "%s", out.error_message);
}
