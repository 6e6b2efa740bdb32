/* Waiting with poll, on an event that is never read. */
#include "pause.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

bool pauses_init(pauses *p)
{
    p->event = eventfd(0, EFD_CLOEXEC);
    return p->event >= 0;
}

void pauses_done(pauses *p)
{
    close(p->event);
}

void pauses_end(pauses *p)
{
    eventfd_write(p->event, 1);
}

int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until one of them is ready, or the time is over. */
static void wait_for(struct pollfd *fds, nfds_t n, int64_t ms)
{
    int64_t until = now_ms() + ms;
    int ready;

    do {
        int64_t left = until - now_ms();
        ready = poll(fds, n, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
}

bool pause_for(const pauses *p, int64_t ms)
{
    struct pollfd end = { .fd = p->event, .events = POLLIN };

    wait_for(&end, 1, ms);
    return end.revents == 0;
}

void pause_until_gone(const pauses *p, int socket, int64_t ms)
{
    struct pollfd either[] = { { .fd = p->event, .events = POLLIN },
                               { .fd = socket, .events = POLLRDHUP } };

    wait_for(either, 2, ms);
}
