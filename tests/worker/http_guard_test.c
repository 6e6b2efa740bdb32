/* Which connections have to go, and which do not. Each is one end of a pair; the other end sees
 * when it is shut down. WRK.16. */
#include "http_guard.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST = 8
};

typedef struct {
    int ours, theirs;
    http_guest *guest;
} client;

static http_guard *open_guard(double seconds)
{
    http_guard_options options = { .most = MOST, .seconds = seconds };
    http_guard *g = NULL;
    cb_error e;

    cr_assert(http_guard_open(&options, &g, &e), "%s", e.message);
    return g;
}

static client enter_guard(http_guard *g, const char *address)
{
    struct sockaddr_in from = { .sin_family = AF_INET };
    struct sockaddr_in6 from6 = { .sin6_family = AF_INET6 };
    bool is_ipv6 = strchr(address, ':') != NULL;
    client c;
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    cr_assert_eq(is_ipv6 ? inet_pton(AF_INET6, address, &from6.sin6_addr)
                         : inet_pton(AF_INET, address, &from.sin_addr),
                 1, "%s", address);
    c = (client){ .ours = pair[0], .theirs = pair[1] };
    c.guest =
        http_guard_enter(g, c.ours, is_ipv6 ? (struct sockaddr *)&from6 : (struct sockaddr *)&from);
    cr_assert_not_null(c.guest);
    poll(NULL, 0, 2); /* the next one comes later, by the clock */
    return c;
}

static void mark(http_guard *g, const client *c, guest_state state)
{
    http_guard_mark(g, c->guest, state);
    poll(NULL, 0, 2);
}

static void enter_all(http_guard *g, client *clients, size_t n, const char *address)
{
    for (size_t i = 0; i < n; i++)
        clients[i] = enter_guard(g, address);
}

static bool is_gone(const client *c, int ms)
{
    struct pollfd look = { .fd = c->theirs, .events = POLLIN };

    return poll(&look, 1, ms) == 1;
}

static void leave(http_guard *g, client *c)
{
    http_guard_leave(g, c->guest);
    close(c->ours);
    close(c->theirs);
}

static void leave_all(http_guard *g, client *clients, size_t n)
{
    for (size_t i = 0; i < n; i++)
        leave(g, &clients[i]);
    cr_expect_eq(http_guard_count(g).connections, 0);
}

/* Of n clients exactly this one is gone. */
static void expect_gone(const client *clients, size_t n, size_t which)
{
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(is_gone(&clients[i], 0), i == which, "client %zu", i);
}

Test(http_guard, there_is_room_for_as_many_as_it_is_told)
{
    OWNED(http_guard) g = open_guard(60);
    client c[MOST];

    enter_all(g, c, MOST, "10.0.0.1");

    expect_gone(c, MOST, MOST);
    cr_expect_eq(http_guard_count(g).connections, MOST);
    cr_expect_eq(http_guard_count(g).crowded, 0);
    leave_all(g, c, MOST);
}

Test(http_guard, the_one_that_has_kept_us_waiting_longest_makes_room)
{
    OWNED(http_guard) g = open_guard(60);
    client c[MOST + 1];

    enter_all(g, c, MOST, "10.0.0.1");
    mark(g, &c[0], GUEST_ASKING); /* its next request: it has been waited for since now */
    c[MOST] = enter_guard(g, "10.0.0.1");

    expect_gone(c, MOST + 1, 1);
    cr_expect_eq(http_guard_count(g).connections, MOST);
    cr_expect_eq(http_guard_count(g).crowded, 1);
    leave_all(g, c, MOST + 1);
}

Test(http_guard, one_that_does_not_read_its_answer_is_waited_for_too)
{
    OWNED(http_guard) g = open_guard(60);
    client c[MOST + 1];

    c[0] = enter_guard(g, "10.0.0.1");
    mark(g, &c[0], GUEST_READING);
    enter_all(g, c + 1, MOST, "10.0.0.1");

    expect_gone(c, MOST + 1, 0);
    leave_all(g, c, MOST + 1);
}

Test(http_guard, one_that_waits_for_us_never_goes)
{
    OWNED(http_guard) g = open_guard(0.2);
    client c[MOST + 2];

    enter_all(g, c, MOST, "10.0.0.1");
    for (size_t i = 0; i < MOST; i++)
        mark(g, &c[i], GUEST_WAITING);
    c[MOST] = enter_guard(g, "10.0.0.1");     /* nobody can make room */
    c[MOST + 1] = enter_guard(g, "10.0.0.1"); /* but the one before */

    expect_gone(c, MOST + 2, MOST);
    cr_expect(is_gone(&c[MOST + 1], 20000), "its time is over");
    expect_gone(c, MOST, MOST);
    leave_all(g, c, MOST + 2);
}

/* Per address: a quarter of the room is everybody's. */
Test(http_guard, an_address_that_holds_most_gives_first)
{
    OWNED(http_guard) g = open_guard(60);
    client c[MOST + 1];

    c[0] = enter_guard(g, "10.0.0.1");
    c[1] = enter_guard(g, "10.0.0.2");
    enter_all(g, c + 2, MOST - 2, "10.0.0.3");
    c[MOST] = enter_guard(g, "10.0.0.4");

    expect_gone(c, MOST + 1, 2);
    leave_all(g, c, MOST + 1);
}

Test(http_guard, among_addresses_within_their_share_age_decides)
{
    OWNED(http_guard) g = open_guard(60);
    client c[MOST + 1];
    char address[16];

    for (size_t i = 0; i < MOST + 1; i++) {
        snprintf(address, sizeof address, "10.0.0.%zu", i / 2);
        c[i] = enter_guard(g, address);
    }

    expect_gone(c, MOST + 1, 0);
    leave_all(g, c, MOST + 1);
}

Test(http_guard, a_network_of_ipv6_is_one_address_and_a_mapped_one_is_ipv4)
{
    OWNED(http_guard) g = open_guard(60);
    client c[MOST + 1];

    c[0] = enter_guard(g, "2001:db8:0:1::1");
    c[1] = enter_guard(g, "::ffff:10.0.0.1");
    c[2] = enter_guard(g, "10.0.0.1");
    c[3] = enter_guard(g, "2001:db8:0:2::1");
    c[4] = enter_guard(g, "2001:db8:0:2::2");
    c[5] = enter_guard(g, "2001:db8:0:2:ffff::3");
    c[6] = enter_guard(g, "2001:db8:0:3::1");
    c[7] = enter_guard(g, "2001:db8:0:4::1");
    c[8] = enter_guard(g, "2001:db8:0:5::1");

    expect_gone(c, MOST + 1, 3);
    leave_all(g, c, MOST + 1);
}

Test(http_guard, a_time_that_is_over_is_over_however_often_another_comes)
{
    OWNED(http_guard) g = open_guard(0.3);
    client slow = enter_guard(g, "10.0.0.1");

    while (!is_gone(&slow, 0)) {
        client quick = enter_guard(g, "10.0.0.2");
        leave(g, &quick);
    }
    cr_expect_eq(http_guard_count(g).slow, 1);
    cr_expect_eq(http_guard_count(g).crowded, 0);
    leave(g, &slow);
}

static atomic_int n_told;
static atomic_llong n_counted;

static void count_event(const cb_event *event, void *arg)
{
    cr_expect_str_eq(event->name, "connections.closed");
    cr_expect_eq(event->level, CB_LEVEL_WARN);
    atomic_fetch_add(&n_told, 1);
    atomic_fetch_add(&n_counted, event->count);
    (void)arg;
}

Test(http_guard, many_that_had_to_go_are_one_line)
{
    http_guard_options options = { .most = MOST, .seconds = 60, .on_event = count_event };
    http_guard *g = NULL;
    client c[MOST];

    cr_assert(http_guard_open(&options, &g, NULL));
    enter_all(g, c, MOST, "10.0.0.1");
    for (int i = 0; i < 100; i++) {
        client more = enter_guard(g, "10.0.0.2");
        leave(g, &more);
        leave(g, &c[i % MOST]);
        c[i % MOST] = enter_guard(g, "10.0.0.1");
    }
    for (int i = 0; i < 2000 && n_told == 0; i++)
        poll(NULL, 0, 10);

    cr_expect_eq(n_told, 1);
    cr_expect_geq(n_counted, 1);
    cr_expect_geq(http_guard_count(g).crowded, 10);
    leave_all(g, c, MOST);
    http_guard_free(g);
}

Test(http_guard, twice_as_many_as_there_is_room_for_are_refused)
{
    OWNED(http_guard) g = open_guard(60);
    struct sockaddr_in from = { .sin_family = AF_INET };
    client c[2 * MOST];

    /* As long as those that had to go are not closed, they count. */
    enter_all(g, c, 2 * MOST, "10.0.0.1");
    cr_expect_null(http_guard_enter(g, c[0].ours, (struct sockaddr *)&from));
    leave(g, &c[0]);
    c[0] = enter_guard(g, "10.0.0.1");
    leave_all(g, c, 2 * MOST);
}
