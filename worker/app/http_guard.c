/* The guard. A connection is told from others by how long it has been in its state, and by how many
 * its address holds. */
#include "http_guard.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fail.h"
#include "thread.h"

enum {
    SHARE = 4,             /* an address with more than a quarter of the room gives first */
    TELL_AGAIN_MS = 60000, /* a siege is one line a minute */
    STACK_BYTES = 256 * 1024
};

struct http_guest {
    http_guest *next_free;
    int fd; /* -1: nobody */
    uint64_t network;
    guest_state state;
    bool is_leaving; /* shut down, not closed yet */
    int64_t since_ms;
};

typedef struct {
    uint64_t network;
    unsigned held; /* 0: nobody's place */
} network_count;

struct http_guard {
    http_guard_options options;
    int64_t most_ms;
    uint64_t seed; /* so that nobody chooses addresses that are slow to count */
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    http_guest *guests; /* twice as many as may be there */
    http_guest *free_guests;
    size_t n_staying;
    network_count *counts;  /* for a moment; twice as many as there are guests */
    uint64_t slow, crowded; /* since the start */
    uint64_t told;          /* of both */
    int64_t tell_ms;        /* not before */
    int64_t wake_ms;        /* when the thread looks next */
    bool stopping;
};

/* ---- addresses ---- */

/* An IPv4 address, or the network of an IPv6 one: whoever has one address of those has all.
 * (Networks below 2^32 are not given to anybody.) */
static uint64_t guard_network_of(const struct sockaddr *address)
{
    uint64_t network = 0;

    if (address && address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
    if (address && address->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)address)->sin6_addr;
        size_t from = IN6_IS_ADDR_V4MAPPED(a) ? 12 : 0, to = from ? 16 : 8;
        for (size_t i = from; i < to; i++)
            network = network << 8 | a->s6_addr[i];
    }
    return network;
}

/* Where a network is counted, or may be. */
static network_count *guard_count_of(const http_guard *g, uint64_t network)
{
    size_t room = 4 * g->options.most;
    uint64_t hash = (network ^ g->seed) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)((hash ^ hash >> 32) * 0x9E3779B97F4A7C15u >> 20) % room;

    while (g->counts[at].held && g->counts[at].network != network)
        at = (at + 1) % room;
    return &g->counts[at];
}

static bool guest_stays(const http_guest *guest)
{
    return guest->fd >= 0 && !guest->is_leaving;
}

/* How many each holds. The lock is held. */
static void guard_count_networks(http_guard *g)
{
    memset(g->counts, 0, 4 * g->options.most * sizeof *g->counts);
    for (size_t i = 0; i < 2 * g->options.most; i++) {
        if (!guest_stays(&g->guests[i]))
            continue;
        network_count *count = guard_count_of(g, g->guests[i].network);
        count->network = g->guests[i].network;
        count->held++;
    }
}

/* ---- who has to go ---- */

/* The lock is held. */
static void guard_send_away(http_guard *g, http_guest *guest)
{
    shutdown(guest->fd, SHUT_RDWR);
    guest->is_leaving = true;
    g->n_staying--;
}

static bool guest_can_go(const http_guest *guest)
{
    return guest_stays(guest) && guest->state != GUEST_WAITING;
}

/* What its address holds, if that is more than its share. */
static unsigned guard_excess_of(const http_guard *g, const http_guest *guest)
{
    unsigned held = guard_count_of(g, guest->network)->held;

    return held > g->options.most / SHARE ? held : 0;
}

/* Whether `a` goes before `b`. */
static bool guard_goes_before(const http_guard *g, const http_guest *a, const http_guest *b)
{
    unsigned a_excess = guard_excess_of(g, a), b_excess = guard_excess_of(g, b);

    return a_excess != b_excess ? a_excess > b_excess : a->since_ms < b->since_ms;
}

/* Everybody else is asked before the one who has just come in. */
static void guard_make_room(http_guard *g, const http_guest *newest)
{
    http_guest *first = NULL;

    guard_count_networks(g);
    for (size_t i = 0; i < 2 * g->options.most; i++) {
        http_guest *guest = &g->guests[i];
        if (guest != newest && guest_can_go(guest) &&
            (!first || guard_goes_before(g, guest, first)))
            first = guest;
    }
    if (first) {
        guard_send_away(g, first);
        g->crowded++;
    }
}

/* ---- the thread ---- */

/* Sends away whose time is over. Gives when the next one's is. */
static int64_t guard_end_overdue(http_guard *g)
{
    int64_t now = monotonic_ms(), next = INT64_MAX;

    for (size_t i = 0; i < 2 * g->options.most; i++) {
        http_guest *guest = &g->guests[i];
        if (!guest_can_go(guest))
            continue;
        int64_t due = guest->since_ms + g->most_ms;
        if (due <= now) {
            guard_send_away(g, guest);
            g->slow++;
        } else if (due < next) {
            next = due;
        }
    }
    return next;
}

/* Tells how many had to go since it was told before. The lock is held, and given back meanwhile. */
static void guard_tell(http_guard *g)
{
    uint64_t slow = g->slow, crowded = g->crowded;
    uint64_t gone = slow + crowded - g->told;
    char what[200];

    g->told = slow + crowded;
    g->tell_ms = monotonic_ms() + TELL_AGAIN_MS;
    if (!g->options.on_event)
        return;
    pthread_mutex_unlock(&g->lock);
    snprintf(what, sizeof what,
             "HTTP connections closed: since the start %llu took longer than http.request-timeout "
             "and %llu made room for others",
             (unsigned long long)slow, (unsigned long long)crowded);
    g->options.on_event(&(cb_event){ .level = CB_LEVEL_WARN,
                                     .name = "connections.closed",
                                     .count = (int64_t)gone,
                                     .error = what,
                                     .hint = "probes and routes go on; see who connects" },
                        g->options.on_event_arg);
    pthread_mutex_lock(&g->lock);
}

static void *guard_watch(void *arg)
{
    http_guard *g = arg;

    pthread_mutex_lock(&g->lock);
    while (!g->stopping) {
        g->wake_ms = guard_end_overdue(g);
        if (g->slow + g->crowded > g->told) {
            if (monotonic_ms() >= g->tell_ms) {
                guard_tell(g);
                continue;
            }
            if (g->tell_ms < g->wake_ms)
                g->wake_ms = g->tell_ms;
        }
        condition_wait(&g->changed, &g->lock, g->wake_ms);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* The lock is held. */
static void guard_wake_by(http_guard *g, int64_t ms)
{
    if (ms < g->wake_ms) {
        g->wake_ms = ms;
        pthread_cond_signal(&g->changed);
    }
}

/* ---- connections ---- */

http_guest *http_guard_enter(http_guard *g, int fd, const struct sockaddr *address)
{
    int64_t now = monotonic_ms();

    pthread_mutex_lock(&g->lock);
    http_guest *guest = g->free_guests;
    if (guest) {
        g->free_guests = guest->next_free;
        *guest = (http_guest){ .fd = fd, .network = guard_network_of(address), .since_ms = now };
        g->n_staying++;
        guard_wake_by(g, now + g->most_ms);
    }
    if (guest && g->n_staying > g->options.most) {
        guard_make_room(g, guest);
        guard_wake_by(g, g->tell_ms);
    }
    pthread_mutex_unlock(&g->lock);
    return guest;
}

void http_guard_leave(http_guard *g, http_guest *guest)
{
    if (!guest)
        return;
    pthread_mutex_lock(&g->lock);
    if (!guest->is_leaving)
        g->n_staying--;
    *guest = (http_guest){ .fd = -1, .next_free = g->free_guests };
    g->free_guests = guest;
    pthread_mutex_unlock(&g->lock);
}

void http_guard_mark(http_guard *g, http_guest *guest, guest_state state)
{
    if (!guest)
        return;
    pthread_mutex_lock(&g->lock);
    guest->state = state;
    guest->since_ms = monotonic_ms();
    if (state != GUEST_WAITING)
        guard_wake_by(g, guest->since_ms + g->most_ms);
    pthread_mutex_unlock(&g->lock);
}

http_guard_figures http_guard_count(http_guard *g)
{
    pthread_mutex_lock(&g->lock);
    http_guard_figures figures = { g->n_staying, g->slow, g->crowded };
    pthread_mutex_unlock(&g->lock);
    return figures;
}

/* ---- start and end ---- */

bool http_guard_open(const http_guard_options *options, http_guard **ret, cb_error *e)
{
    http_guard *raw = calloc(1, sizeof *raw);

    if (!raw)
        return fail_memory(e);
    raw->options = *options;
    raw->most_ms = (int64_t)(options->seconds * 1000);
    raw->wake_ms = INT64_MAX;
    if (getrandom(&raw->seed, sizeof raw->seed, GRND_NONBLOCK) < 0)
        raw->seed = (uint64_t)monotonic_ms();
    pthread_mutex_init(&raw->lock, NULL);
    condition_init(&raw->changed);
    OWNED(http_guard) g = raw;
    g->guests = calloc(2 * options->most, sizeof *g->guests);
    g->counts = calloc(4 * options->most, sizeof *g->counts);
    for (size_t i = 0; g->guests && i < 2 * options->most; i++) {
        g->guests[i] = (http_guest){ .fd = -1, .next_free = g->free_guests };
        g->free_guests = &g->guests[i];
    }
    g->is_started = g->guests && g->counts && thread_start(&g->thread, STACK_BYTES, guard_watch, g);
    if (!g->is_started)
        return cb_fail(e, CB_MEMORY, "cannot start the HTTP server: out of threads or memory");
    *ret = http_guard_take(&g);
    return true;
}

void http_guard_free(http_guard *g)
{
    if (!g)
        return;
    if (g->is_started) {
        pthread_mutex_lock(&g->lock);
        g->stopping = true;
        pthread_cond_signal(&g->changed);
        pthread_mutex_unlock(&g->lock);
        pthread_join(g->thread, NULL);
    }
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    free(g->guests);
    free(g->counts);
    free(g);
}
