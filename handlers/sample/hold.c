/* Hold {"port": 7000, "ms": 250}: a call to somebody at 127.0.0.1 that takes that long.
 *
 * Who listens there can count how many calls are open at once, whatever becomes of the caller: the
 * kernel closes the connection of a killed worker. tests/tools/tally.c does. The conversation:
 *
 *     caller: "<command_id> <attempt>\n"      callee: "ok\n", once the call is counted
 *     caller: says that it ends (FIN)         callee: closes, once the call is not counted any more
 *
 * So a call is counted only while its handler runs, and surely during those ms. */
#include "rest.h"
#include "sample.h"
#include "sample_fields.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const int64_t day_ms = 86400000;

/* Waits of one read or write: never longer than the run has. */
static bool bound_waits(int fd, const cb_context *ctx)
{
    int64_t ms = cb_context_remaining_ms(ctx);
    if (ms <= 0) {
        errno = ETIMEDOUT;
        return false;
    }
    if (ms > day_ms)
        ms = day_ms;
    const struct timeval wait = { ms / 1000, ms % 1000 * 1000 };
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) == 0;
}

static bool begin_call(int fd, int64_t port, const cb_context *ctx, const cb_command *command)
{
    const struct sockaddr_in callee = { .sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    char line[64], answer[3];
    int length = snprintf(line, sizeof line, "%s %d\n", command->command_id.text, command->attempt);

    errno = 0;
    return bound_waits(fd, ctx) &&
           connect(fd, (const struct sockaddr *)&callee, sizeof callee) == 0 &&
           send(fd, line, (size_t)length, MSG_NOSIGNAL) == length &&
           recv(fd, answer, sizeof answer, MSG_WAITALL) == sizeof answer &&
           memcmp(answer, "ok\n", sizeof answer) == 0;
}

/* Whatever the callee makes of it, the call is over. */
static void end_call(int fd, const cb_context *ctx)
{
    char nothing;

    if (shutdown(fd, SHUT_WR) == 0 && bound_waits(fd, ctx))
        while (recv(fd, &nothing, 1, 0) > 0)
            ;
}

cb_outcome sample_hold(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)result;
    fields f = fields_of(ctx);
    int64_t port = field_integer(&f, "port", 1, 65535);
    int64_t ms = field_integer(&f, "ms", 0, day_ms);
    if (f.problem[0])
        return fields_refuse(&f, ctx);

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return cb_transient(ctx, "NO_SOCKET", "%s", strerror(errno));
    if (!begin_call(fd, port, ctx, command)) {
        const char *why = errno ? strerror(errno) : "it did not say ok";
        close(fd);
        return cb_transient(ctx, "CALL_FAILED", "127.0.0.1:%d: %s", (int)port, why);
    }
    rest_end end = rest(ctx, ms, false);
    end_call(fd, ctx);
    close(fd);
    return end == REST_DONE ? CB_SUCCESS : rest_outcome(ctx, end);
}
