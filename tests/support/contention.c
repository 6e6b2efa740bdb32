/* The threads share a pool of what was claimed. A settler or extender takes a random handful of it
 * in random order without removing it, so that all of them work on the same commands. */
#include "contention.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "claims.h"

enum {
    POOL = 150,
    HANDFUL = 60,
    SETTLERS = 2,
    EXTENDERS = 2,
    THREADS = SETTLERS + EXTENDERS + 1
};

static const double short_vt = 0.02; /* seconds: many leases end while somebody works on them */

typedef struct {
    cb_uuid id;
    int64_t lease_no; /* 0: a free place */
} held_lease;

typedef struct {
    const char *conninfo;
    pthread_mutex_t lock; /* guards pool */
    held_lease pool[POOL];
    double end;
    atomic_bool stop;                        /* One that failed ends the contest. */
    atomic_long settled[CB_INTERRUPTED + 1]; /* by outcome */
    atomic_long verdicts[CB_STALE + 1];
    atomic_long extended, claimed, expired;
} contest;

typedef struct {
    contest *c;
    int number;
    unsigned seed;
    cb_error error;
    held_lease some[HANDFUL]; /* a settler's: what it brings next time, late enough to be stale */
    size_t n_some;
} contestant;

static unsigned roll(contestant *t, unsigned sides)
{
    return (unsigned)rand_r(&t->seed) % sides;
}

static void pool_put(contest *c, const cb_command *command)
{
    held_lease *place = NULL;

    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < POOL; i++) {
        if (c->pool[i].lease_no == 0 && !place)
            place = &c->pool[i];
    }
    if (place)
        *place = (held_lease){ command->command_id, command->lease_no };
    pthread_mutex_unlock(&c->lock);
}

static void pool_drop(contest *c, const cb_uuid *id, int64_t lease_no)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < POOL; i++) {
        if (c->pool[i].lease_no == lease_no && strcmp(c->pool[i].id.text, id->text) == 0)
            c->pool[i].lease_no = 0;
    }
    pthread_mutex_unlock(&c->lock);
}

static size_t pool_peek(contestant *t, held_lease *out)
{
    size_t n = 0;

    pthread_mutex_lock(&t->c->lock);
    for (size_t i = 0; i < POOL && n < HANDFUL; i++) {
        held_lease *one = &t->c->pool[roll(t, POOL)];
        if (one->lease_no)
            out[n++] = *one;
    }
    pthread_mutex_unlock(&t->c->lock);
    return n;
}

static bool settle_some(contestant *t, cb_db *db)
{
    static const cb_outcome outcomes[] = { CB_SUCCESS,     CB_SUCCESS,   CB_SUCCESS,
                                           CB_SUCCESS,     CB_TRANSIENT, CB_BUSINESS_RULE,
                                           CB_INTERRUPTED, CB_PERMANENT };
    held_lease next[HANDFUL] = { 0 };
    cb_settlement items[HANDFUL];
    size_t n_next = pool_peek(t, next);

    for (size_t i = 0; i < t->n_some; i++)
        items[i] = (cb_settlement){ .domain = "fx",
                                    .command_id = t->some[i].id,
                                    .lease_no = t->some[i].lease_no,
                                    .outcome = outcomes[roll(t, 8)],
                                    .error_code = "E" };
    if (!cb_settle(db, "w", items, t->n_some, &t->error))
        return false;
    for (size_t i = 0; i < t->n_some; i++) {
        t->c->verdicts[items[i].verdict]++;
        if (items[i].verdict == CB_SETTLED)
            t->c->settled[items[i].outcome]++;
        if (items[i].verdict != CB_BUSY)
            pool_drop(t->c, &t->some[i].id, t->some[i].lease_no);
    }
    memcpy(t->some, next, sizeof next);
    t->n_some = n_next;
    return true;
}

static bool extend_some(contestant *t, cb_db *db)
{
    held_lease some[HANDFUL];
    cb_lease leases[HANDFUL];
    size_t n = pool_peek(t, some);

    for (size_t i = 0; i < n; i++)
        leases[i] =
            (cb_lease){ .domain = "fx", .command_id = some[i].id, .lease_no = some[i].lease_no };
    if (!cb_lease_extend(db, "w", leases, n, short_vt, &t->error))
        return false;
    for (size_t i = 0; i < n; i++)
        t->c->extended += leases[i].state == CB_LEASE_EXTENDED;
    return true;
}

/* Every command may be claimed nearly without end. */
static bool feed(contestant *t, cb_db *db, size_t n)
{
    cb_send commands[HANDFUL];

    for (size_t i = 0; i < n; i++)
        commands[i] = (cb_send){ .domain = "fx",
                                 .command_type = "Test",
                                 .reply_to = "payments__replies",
                                 .max_attempts = 1000,
                                 .timeout_seconds = 1 };
    return cb_send_many(db, commands, n, NULL, NULL, NULL, &t->error);
}

/* New commands come only when a claim was not full: else the backlog would be claimed before those
 * whose leases expired. */
static bool claim_some(contestant *t, cb_db *db, cb_receiver *receiver)
{
    OWNED(cb_claim) claim = NULL;

    if (!cb_receive(db, receiver, HANDFUL, &claim, &t->error))
        return false;
    for (size_t i = 0; i < cb_claim_count(claim); i++) {
        pool_put(t->c, cb_claim_at(claim, i));
        t->c->claimed++;
        t->c->expired += cb_claim_at(claim, i)->attempt > 1;
    }
    return feed(t, db, HANDFUL - cb_claim_count(claim));
}

static void *compete(void *arg)
{
    contestant *t = arg;
    OWNED(cb_db) db = NULL;
    OWNED(cb_receiver) receiver = NULL;
    cb_receive_options options = { .worker = "w", .vt_seconds = short_vt };
    bool fine = cb_db_open(t->c->conninfo, &db, &t->error) &&
                cb_receiver_open("fx", &options, &receiver, &t->error);

    while (fine && !t->c->stop && test_clock() < t->c->end) {
        if (t->number < SETTLERS)
            fine = settle_some(t, db);
        else if (t->number < SETTLERS + EXTENDERS)
            fine = extend_some(t, db);
        else
            fine = claim_some(t, db, receiver);
    }
    t->c->stop |= !fine;
    return NULL;
}

static void drain(contest *c)
{
    test_exec(bus.conn, "UPDATE commandbus.domain SET fleet_limit = 0");
    while (test_number(bus.conn, "SELECT count(*) FROM pgmq.q_fx__commands", NULL) > 0)
        c->settled[CB_SUCCESS] += (long)test_run_all(bus.db, "drain", 1000);
}

/* Rows, audit and replies agree with what the settlers were told, command by command. */
static void expect_each_ended_once(contest *c)
{
    char expected[160];

    snprintf(expected, sizeof expected, "COMPLETED %ld, FAILED %ld, IN_TROUBLESHOOTING_QUEUE %ld",
             c->settled[CB_SUCCESS], c->settled[CB_BUSINESS_RULE], c->settled[CB_PERMANENT]);
    expect_value(
        bus.conn, expected,
        "SELECT string_agg(s || ' ' || n, ', ' ORDER BY s) FROM (SELECT status::text s, count(*) n "
        "FROM commandbus.command_metadata GROUP BY 1) x");
    expect_value(
        bus.conn, "0",
        "SELECT count(*) FROM commandbus.command_metadata c "
        "LEFT JOIN (SELECT command_id, count(*) n FROM commandbus.audit "
        "  WHERE event_type IN ('COMPLETED', 'BUSINESS_RULE_FAILED', 'MOVED_TO_TSQ') GROUP BY 1) a "
        "  USING (command_id) "
        "LEFT JOIN (SELECT (message ->> 'command_id')::uuid command_id, count(*) n, "
        "  bool_and((message ->> 'final')::boolean) final FROM pgmq.q_payments__replies GROUP BY 1) p "
        "  USING (command_id) "
        "WHERE a.n IS DISTINCT FROM 1 OR p.n IS DISTINCT FROM 1 "
        "   OR p.final <> (c.status <> 'IN_TROUBLESHOOTING_QUEUE')");
    expect_value(
        bus.conn, "0 poisoned",
        "SELECT count(*) || ' poisoned' FROM commandbus.audit WHERE event_type = 'POISON_ARCHIVED'");
    expect_value(
        bus.conn, "0 deadlocks",
        "SELECT deadlocks || ' deadlocks' FROM pg_stat_database WHERE datname = current_database()");
    /* A contest in which nobody met anybody proves nothing. */
    cr_expect_gt(c->verdicts[CB_BUSY], 0);
    cr_expect_gt(c->verdicts[CB_ALREADY], 0);
    cr_expect_gt(c->verdicts[CB_STALE], 0);
    cr_expect_gt(c->extended, 0);
    cr_expect_gt(c->expired, 0);
}

void test_contention(double seconds, int fleet_limit)
{
    contest *c = calloc(1, sizeof *c);
    contestant all[THREADS];
    pthread_t threads[THREADS];
    char limit[16];

    bus_open();
    c->conninfo = bus.conninfo;
    pthread_mutex_init(&c->lock, NULL);
    snprintf(limit, sizeof limit, "%d", fleet_limit);
    free(test_value(bus.conn, "UPDATE commandbus.domain SET fleet_limit = $1::integer RETURNING 1",
                    limit, NULL));
    c->end = test_clock() + seconds;
    for (int i = 0; i < THREADS; i++) {
        all[i] = (contestant){ .c = c, .number = i, .seed = (unsigned)i + 1 };
        cr_assert_eq(pthread_create(&threads[i], NULL, compete, &all[i]), 0);
    }

    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    for (int i = 0; i < THREADS; i++)
        cr_expect_eq(all[i].error.code, CB_OK, "thread %d: %s %s", i, all[i].error.sqlstate,
                     all[i].error.message);
    /* A fence that has its outcome holds no place any more. */
    expect_value(bus.conn, "0 places lost",
                 "SELECT count(*) || ' places lost' FROM commandbus.fleet_lease f "
                 "JOIN commandbus.command_metadata c USING (command_id, lease_no) "
                 "WHERE c.status <> 'IN_PROGRESS'");
    drain(c);
    expect_each_ended_once(c);
    fprintf(stderr,
            "claimed %ld, again %ld, extended %ld; SETTLED %ld, ALREADY %ld, BUSY %ld, STALE %ld\n",
            c->claimed, c->expired, c->extended, c->verdicts[0], c->verdicts[1], c->verdicts[2],
            c->verdicts[3]);
    pthread_mutex_destroy(&c->lock);
    free(c);
    bus_close();
}
