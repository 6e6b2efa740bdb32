/* The test is the fleet: it knows which handlers run, and counts them itself.
 *
 *     claimers ─▶ roster of handlers ─▶ settlers (outcomes, timeouts and late outcomes, BUSY again)
 *                        └─▶ renewers
 *
 * A claim may also be lost on the way (then release_unknown gives it back), or be a silent
 * holder's, who brings nothing and ends with its lease and its timeout. Every other lease is so
 * long that a place which is lost stays lost until the end, where it is found. */
#include "limit_stress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "claims.h"
#include "wait.h"

enum {
    CLAIMERS = 6,
    SETTLERS = 3,
    RENEWERS = 2,
    THREADS = CLAIMERS + SETTLERS + RENEWERS,
    COMMANDS = 400,
    ROSTER = 1000,
    HANDFUL = 8,
    CHANGES = 100000,
};

static const double long_vt = 60, silent_vt = 0.3;

typedef enum {
    NOBODY,
    RUNS,
    TIMED_OUT, /* settled as such, and runs on */
    ENDING,    /* has returned: a settler brings its outcome */
    SILENT,
} handler_state;

typedef struct {
    handler_state state;
    int claimer;
    cb_uuid id;
    int64_t lease_no;
    double until; /* of a silent one */
} handler;

typedef struct {
    const char *conninfo;
    pthread_mutex_t lock; /* guards the roster */
    handler roster[ROSTER];
    int limits[CHANGES]; /* the last one may still be on its way to the database */
    atomic_int begun, in_force;
    atomic_bool drain, stop;
    atomic_long claimed, checked, over, timeouts, busy, released, lost, silent, gone;
} fleet;

typedef struct {
    fleet *f;
    int number;
    unsigned seed;
    cb_error error;
} member;

static unsigned member_rolls(member *m, unsigned sides)
{
    return (unsigned)rand_r(&m->seed) % sides;
}

/* With the roster locked. */
static int count_live(const fleet *f)
{
    double now = test_clock();
    int n = 0;

    for (size_t i = 0; i < ROSTER; i++) {
        const handler *h = &f->roster[i];
        n += h->state == RUNS || h->state == TIMED_OUT || (h->state == SILENT && h->until > now);
    }
    return n;
}

/* Whoever was claimed last of those that run was claimed since `first`: no more run than a limit
 * allowed since then, unless there was none. */
static void check_limit(fleet *f, int first, int live)
{
    int most = 0;

    for (int i = first; i <= f->begun; i++) {
        if (f->limits[i] == 0)
            return;
        most = f->limits[i] > most ? f->limits[i] : most;
    }
    f->checked++;
    f->over += live > most;
}

static void enlist(member *m, const cb_claim *claim, handler like, int first)
{
    fleet *f = m->f;
    size_t next = 0;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < cb_claim_count(claim); i++) {
        while (next < ROSTER &&
               (f->roster[next].state == RUNS || f->roster[next].state == ENDING ||
                f->roster[next].state == TIMED_OUT ||
                (f->roster[next].state == SILENT && f->roster[next].until > test_clock())))
            next++;
        if (next == ROSTER)
            break;
        like.id = cb_claim_at(claim, i)->command_id;
        like.lease_no = cb_claim_at(claim, i)->lease_no;
        f->roster[next] = like;
    }
    check_limit(f, first, count_live(f));
    pthread_mutex_unlock(&f->lock);
    f->claimed += (long)cb_claim_count(claim);
}

/* What this claimer knows that it holds. */
static size_t own_leases(member *m, cb_lease *to)
{
    size_t n = 0;

    pthread_mutex_lock(&m->f->lock);
    for (size_t i = 0; i < ROSTER; i++) {
        const handler *h = &m->f->roster[i];
        if (h->state != NOBODY && h->state != SILENT && h->claimer == m->number)
            to[n++] = (cb_lease){ .domain = "fx", .command_id = h->id, .lease_no = h->lease_no };
    }
    pthread_mutex_unlock(&m->f->lock);
    return n;
}

static bool release_unknown(member *m, cb_db *db, const char *name)
{
    cb_lease held[ROSTER];
    size_t n = own_leases(m, held), released = 0;

    if (!cb_lease_release_unknown(db, "fx", name, held, n, &released, &m->error))
        return false;
    m->f->released += (long)released;
    return true;
}

/* Waiting for its turn may take longer than a claim waits. */
static bool is_passing(member *m)
{
    bool passing = m->error.code == CB_AGAIN;

    if (passing)
        m->error = (cb_error){ 0 };
    return passing;
}

static bool member_claims(member *m, cb_db *db, cb_receiver *receiver, handler like, bool loses)
{
    OWNED(cb_claim) claim = NULL;
    int first = m->f->in_force;
    double asked_at = test_clock();

    if (!cb_receive(db, receiver, 1 + (int)member_rolls(m, 3), &claim, &m->error))
        return is_passing(m);
    if (loses) {
        m->f->lost += (long)cb_claim_count(claim);
        return true;
    }
    like.until = asked_at + silent_vt + 1;
    if (cb_claim_count(claim) > 0)
        enlist(m, claim, like, first);
    if (like.state == SILENT)
        m->f->silent += (long)cb_claim_count(claim);
    return true;
}

static bool claimer_works(member *m, cb_db *db)
{
    char name[16];
    OWNED(cb_receiver) own = NULL;
    OWNED(cb_receiver) silent = NULL;
    bool fine = true;

    snprintf(name, sizeof name, "w%d", m->number);
    cb_receive_options options = { .worker = name,
                                   .vt_seconds = long_vt,
                                   .default_max_attempts = 1000000,
                                   .default_timeout_seconds = 1 };
    cb_receive_options of_silent = options;
    of_silent.worker = "silent";
    of_silent.vt_seconds = silent_vt;
    if (!cb_receiver_open("fx", &options, &own, &m->error) ||
        !cb_receiver_open("fx", &of_silent, &silent, &m->error))
        return false;

    while (fine && !m->f->stop) {
        unsigned what = m->f->drain ? 1000 : member_rolls(m, 1000);
        handler running = { .state = RUNS, .claimer = m->number };
        if (what < 15) {
            fine = member_claims(m, db, silent, (handler){ .state = SILENT }, false);
        } else if (what < 60) {
            fine = member_claims(m, db, own, running, true) && release_unknown(m, db, name);
        } else {
            fine = member_claims(m, db, own, running, false);
        }
        /* What another held just then was not released. */
        if (fine && (what < 60 || member_rolls(m, 50) == 0))
            fine = release_unknown(m, db, name);
    }
    return fine && release_unknown(m, db, name);
}

/* Takes some handlers to bring their outcomes; those that time out are left to run. */
static size_t take_some(member *m, size_t *at, cb_settlement *items)
{
    fleet *f = m->f;
    size_t n = 0;

    pthread_mutex_lock(&f->lock);
    for (size_t look = 0; look < ROSTER && n < HANDFUL; look++) {
        size_t i = member_rolls(m, ROSTER);
        handler *h = &f->roster[i];
        if (h->state != RUNS && h->state != TIMED_OUT)
            continue;
        cb_settlement *item = &items[n];
        *item = (cb_settlement){ .domain = "fx",
                                 .command_id = h->id,
                                 .lease_no = h->lease_no,
                                 .outcome = f->drain || member_rolls(m, 20) == 0 ? CB_SUCCESS
                                            : member_rolls(m, 3)                 ? CB_TRANSIENT
                                                                                 : CB_INTERRUPTED,
                                 .error_code = "HANDLER_TIMEOUT" };
        item->still_running = h->state == RUNS && !f->drain && member_rolls(m, 4) == 0;
        if (item->still_running)
            item->outcome = CB_TRANSIENT;
        h->state = item->still_running ? TIMED_OUT : ENDING;
        at[n++] = i;
    }
    pthread_mutex_unlock(&f->lock);
    return n;
}

static bool settler_works(member *m, cb_db *db)
{
    size_t at[HANDFUL];
    cb_settlement items[HANDFUL];

    for (size_t n = 0; !m->f->stop;) {
        n = take_some(m, at, items);
        while (n > 0) {
            size_t again = 0;
            if (!cb_settle(db, "settler", items, n, &m->error))
                return false;
            pthread_mutex_lock(&m->f->lock);
            for (size_t i = 0; i < n; i++) {
                m->f->busy += items[i].verdict == CB_BUSY;
                m->f->timeouts += items[i].still_running && items[i].verdict != CB_BUSY;
                if (items[i].verdict == CB_BUSY) {
                    items[again] = items[i];
                    at[again++] = at[i];
                } else if (!items[i].still_running) {
                    m->f->roster[at[i]].state = NOBODY;
                }
            }
            pthread_mutex_unlock(&m->f->lock);
            n = again;
        }
    }
    return true;
}

/* Renews some handlers, in no order. A timeout that is on its way may be settled before or
 * after. */
static bool renewer_works(member *m, cb_db *db)
{
    while (!m->f->stop) {
        cb_lease leases[HANDFUL];
        size_t n = 0;
        pthread_mutex_lock(&m->f->lock);
        for (size_t look = 0; look < ROSTER && n < HANDFUL; look++) {
            const handler *h = &m->f->roster[member_rolls(m, ROSTER)];
            if (h->state != NOBODY && h->state != SILENT)
                leases[n++] =
                    (cb_lease){ .domain = "fx", .command_id = h->id, .lease_no = h->lease_no };
        }
        pthread_mutex_unlock(&m->f->lock);
        if (!cb_lease_extend(db, "renewer", leases, n, long_vt, &m->error))
            return false;
        for (size_t i = 0; i < n; i++)
            m->f->gone += leases[i].state == CB_LEASE_GONE;
    }
    return true;
}

static void *member_works(void *arg)
{
    member *m = arg;
    OWNED(cb_db) db = NULL;
    bool fine = cb_db_open(m->f->conninfo, &db, &m->error);

    if (fine && m->number < CLAIMERS)
        fine = claimer_works(m, db);
    else if (fine && m->number < CLAIMERS + SETTLERS)
        fine = settler_works(m, db);
    else if (fine)
        fine = renewer_works(m, db);
    m->f->stop |= !fine;
    return NULL;
}

static void change_limit(fleet *f, int limit)
{
    cb_error e = { 0 };
    int next = f->begun + 1;

    cr_assert_lt(next, CHANGES);
    f->limits[next] = limit;
    f->begun = next;
    while (!cb_fleet_limit_set(bus.db, "fx", limit, &e))
        cr_assert_eq(e.code, CB_AGAIN, "%s %s", e.sqlstate, e.message);
    f->in_force = next;
}

/* What never happened was not tested. */
static bool has_seen_everything(const fleet *f)
{
    return f->checked && f->timeouts && f->busy && f->released && f->silent && f->gone;
}

/* Limits come and go; after each, claims go on. Longer than said where little happens in that
 * time. */
static void change_limits(fleet *f, double seconds)
{
    static const int limits[] = { 5, 2, 9, 0, 3, 0, 6, 1, 4 };
    double end = test_clock() + seconds, last = end + patience_seconds;

    for (size_t round = 0; test_clock() < (has_seen_everything(f) ? end : last) && !f->stop;
         round++) {
        long before = f->claimed;
        change_limit(f, limits[round % (sizeof limits / sizeof *limits)]);
        double deadline = test_clock() + long_vt / 2; /* what is lost must not come back */
        while (f->claimed < before + 12 && test_clock() < deadline && !f->stop)
            free(test_value(bus.conn, "SELECT 1", NULL));
        cr_expect_geq(f->claimed, before + 12, "claims stopped at limit %d", f->limits[f->begun]);
    }
}

void test_limit_stress(double seconds)
{
    fleet *f = calloc(1, sizeof *f);
    member all[THREADS];
    pthread_t threads[THREADS];

    bus_open();
    test_fleet_limit(4, COMMANDS);
    f->conninfo = bus.conninfo;
    f->limits[0] = 4;
    pthread_mutex_init(&f->lock, NULL);
    for (int i = 0; i < THREADS; i++) {
        all[i] = (member){ .f = f, .number = i, .seed = (unsigned)i + 1 };
        cr_assert_eq(pthread_create(&threads[i], NULL, member_works, &all[i]), 0);
    }
    change_limits(f, seconds);

    change_limit(f, 5);
    f->drain = true;
    /* No longer than a lease: what is lost must not come back. (On a server that has just started
     * what the silent held comes back only one lease after the start.) */
    for (double end = test_clock() + long_vt; test_clock() < end && !f->stop;) {
        if (test_number(bus.conn,
                        "SELECT count(*) FROM commandbus.command_metadata "
                        "WHERE status <> 'COMPLETED'",
                        NULL) == 0)
            break;
    }
    f->stop = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    for (int i = 0; i < THREADS; i++)
        cr_expect_eq(all[i].error.code, CB_OK, "thread %d: %s %s", i, all[i].error.sqlstate,
                     all[i].error.message);
    expect_value(bus.conn, "400 COMPLETED",
                 "SELECT string_agg(n || ' ' || status, ', ') FROM (SELECT status, count(*) n "
                 "FROM commandbus.command_metadata GROUP BY 1) c");
    expect_value(bus.conn, "0 places lost",
                 "SELECT count(*) || ' places lost' FROM commandbus.fleet_lease "
                 "WHERE worker <> 'silent'");
    expect_value(
        bus.conn, "0 deadlocks",
        "SELECT deadlocks || ' deadlocks' FROM pg_stat_database WHERE datname = current_database()");
    cr_expect_eq(f->over, 0, "%ld of %ld claims over the limit", f->over, f->checked);
    cr_expect(has_seen_everything(f));
    fprintf(stderr,
            "claimed %ld, checked %ld, timeouts %ld, busy %ld, lost %ld, released %ld, silent %ld, "
            "gone %ld, limits %d\n",
            f->claimed, f->checked, f->timeouts, f->busy, f->lost, f->released, f->silent, f->gone,
            f->begun);
    pthread_mutex_destroy(&f->lock);
    free(f);
    bus_close();
}
