/* Whatever happens to its members, a batch counts them right and completes exactly once. */
#include "expect.h"
#include "fixture.h"
#include "seed.h"

#include <stdio.h>

enum {
    OPERATIONS = 300,
    MOST_BATCHES = 64,
    MOST_COMMANDS = 400
};

typedef enum {
    PENDING,
    IN_PROGRESS,
    COMPLETED,
    FAILED,
    CANCELED,
    IN_TSQ,
    STATES
} state;

/* What we believe of a command, from what was done to it alone. */
typedef struct {
    cb_uuid id;
    int batch;
    state state;
    int attempts, max_attempts;
    int64_t lease_no;
} member;

static member members[MOST_COMMANDS];
static int n_members;
static cb_uuid batches[MOST_BATCHES];
static int n_batches;
static cb_receiver *receiver;
static unsigned seed;

static void open_with_receiver(void)
{
    cb_error e = { 0 };

    bus_open();
    expect_ok(cb_receiver_open("fx", &(cb_receive_options){ .worker = "test" }, &receiver, &e), e);
}

static void close_with_receiver(void)
{
    cb_receiver_free(receiver);
    bus_close();
}

TestSuite(batch_property, .init = open_with_receiver, .fini = close_with_receiver);

static void count_members(int batch, int counts[STATES])
{
    memset(counts, 0, STATES * sizeof *counts);
    for (int i = 0; i < n_members; i++)
        counts[members[i].state] += members[i].batch == batch;
}

static bool is_closed(int batch)
{
    int counts[STATES];

    count_members(batch, counts);
    return counts[PENDING] + counts[IN_PROGRESS] + counts[IN_TSQ] == 0;
}

/* A random one in that state, or NULL. */
static member *pick(state wanted)
{
    int start = n_members ? (int)test_random(&seed, (unsigned)n_members) : 0;

    for (int i = 0; i < n_members; i++) {
        member *m = &members[(start + i) % n_members];
        if (m->state == wanted)
            return m;
    }
    return NULL;
}

/* Notes a new member that starts its life, and says how to send it. */
static cb_send new_member(int batch)
{
    member *m = &members[n_members++];

    *m = (member){ .id = cb_uuid_new(),
                   .batch = batch,
                   .max_attempts = 1 + (int)test_random(&seed, 2) };
    return (cb_send){ .domain = "fx",
                      .command_type = "BookFx",
                      .command_id = m->id.text,
                      .max_attempts = m->max_attempts };
}

static void random_batch(void)
{
    cb_send commands[3];
    cb_error e = { 0 };
    size_t n = 1 + test_random(&seed, 3);

    if (n_batches == MOST_BATCHES || n_members + 3 > MOST_COMMANDS)
        return;
    for (size_t i = 0; i < n; i++)
        commands[i] = new_member(n_batches);
    expect_ok(cb_batch_create(
                  bus.db, &(cb_batch_options){ .domain = "fx", .reply_to = "payments__replies" },
                  commands, n, &batches[n_batches], &e),
              e);
    n_batches++;
}

static void add_to_batch(void)
{
    cb_error e = { 0 };

    if (n_batches == 0 || n_members == MOST_COMMANDS)
        return;
    int batch = (int)test_random(&seed, (unsigned)n_batches);
    bool closed = is_closed(batch);
    cb_send command = new_member(batch);
    command.batch_id = batches[batch].text;
    if (!closed) {
        expect_ok(cb_send_command(bus.db, &command, NULL, &e), e);
        return;
    }
    n_members--;
    expect_error(CB_BATCH_CLOSED, cb_send_command(bus.db, &command, NULL, &e), e);
}

static member *find(const cb_uuid *id)
{
    for (int i = 0; i < n_members; i++) {
        if (strcmp(members[i].id.text, id->text) == 0)
            return &members[i];
    }
    cr_assert_fail("command %s was never sent", id->text);
    return NULL;
}

static void receive_some(int quantity)
{
    cb_claim *claim = NULL;
    cb_error e = { 0 };

    expect_ok(cb_receive(bus.db, receiver, quantity, &claim, &e), e);
    for (size_t i = 0; i < cb_claim_count(claim); i++) {
        const cb_command *c = cb_claim_at(claim, i);
        member *m = find(&c->command_id);
        cr_assert_eq(m->state, PENDING, "claimed in state %d", m->state);
        cr_assert_eq(c->attempt, ++m->attempts);
        m->state = IN_PROGRESS;
        m->lease_no = c->lease_no;
    }
    cb_claim_free(claim);
}

static void receive_few(void)
{
    receive_some(1 + (int)test_random(&seed, 4));
}

static void settle_as(member *m, cb_outcome outcome)
{
    cb_settlement item = { .domain = "fx",
                           .command_id = m->id,
                           .lease_no = m->lease_no,
                           .outcome = outcome,
                           .error_code = outcome == CB_SUCCESS ? NULL : "E_TEST" };
    cb_error e = { 0 };

    expect_ok(cb_settle(bus.db, "test", &item, 1, &e), e);
    cr_assert_eq(item.verdict, CB_SETTLED);
    switch (outcome) {
    case CB_SUCCESS:
        m->state = COMPLETED;
        break;
    case CB_BUSINESS_RULE:
        m->state = FAILED;
        break;
    case CB_INTERRUPTED:
        m->state = PENDING;
        m->attempts--;
        break;
    case CB_TRANSIENT:
        m->state = m->attempts < m->max_attempts ? PENDING : IN_TSQ;
        break;
    case CB_PERMANENT:
        m->state = IN_TSQ;
    }
}

/* Mostly well, or no batch would ever come to its end. */
static void settle_random(void)
{
    static const cb_outcome outcomes[] = { CB_SUCCESS,   CB_SUCCESS,       CB_SUCCESS,
                                           CB_PERMANENT, CB_BUSINESS_RULE, CB_TRANSIENT,
                                           CB_TRANSIENT, CB_INTERRUPTED };
    member *m = pick(IN_PROGRESS);

    if (m)
        settle_as(m, outcomes[test_random(&seed, sizeof outcomes / sizeof *outcomes)]);
}

static void decide_one(void)
{
    static const struct {
        bool (*decide)(cb_db *, const cb_tsq_action *, cb_error *);
        state then;
    } decisions[] = {
        { cb_tsq_retry, PENDING },
        { cb_tsq_cancel, CANCELED },
        { cb_tsq_complete, COMPLETED },
    };
    member *m = pick(IN_TSQ);
    unsigned which = test_random(&seed, 3);
    cb_error e = { 0 };

    if (!m)
        return;
    const cb_tsq_action action = {
        .domain = "fx", .command_id = m->id.text, .operator_name = "ann", .reason = "random"
    };
    expect_ok(decisions[which].decide(bus.db, &action, &e), e);
    m->state = decisions[which].then;
    if (m->state == PENDING)
        m->attempts = 0;
    else
        expect_error(CB_INVALID_OPERATION, decisions[which].decide(bus.db, &action, &e), e);
}

static void expect_none_open(void)
{
    size_t closed = 99;
    cb_error e = { 0 };

    expect_ok(cb_batch_close(bus.db, NULL, 0, &closed, &e), e);
    cr_assert_eq(closed, 0, "%zu batches had been left open", closed);
}

/* The view says what we believe, batch by batch in the order of their creation. */
static void expect_counts(int operation)
{
    char *expected = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&expected, &size);

    for (int b = 0; b < n_batches; b++) {
        int c[STATES], total = 0;
        count_members(b, c);
        for (int i = 0; i < STATES; i++)
            total += c[i];
        fprintf(out, "%s%d %d %d %d %d %d %d %s", b ? "\n" : "", total, c[PENDING], c[IN_PROGRESS],
                c[COMPLETED], c[FAILED], c[CANCELED], c[IN_TSQ], is_closed(b) ? "t" : "f");
    }
    fclose(out);
    char *found = test_value(bus.conn,
                             "SELECT string_agg(concat_ws(' ', total, pending, in_progress, "
                             "completed, failed, canceled, in_troubleshooting, completed_at IS NOT "
                             "NULL), E'\\n' ORDER BY created_at) FROM commandbus.batch_status",
                             NULL);
    cr_assert_str_eq(found, expected, "after operation %d found\n%s\nand not\n%s", operation, found,
                     expected);
    free(found);
    free(expected);
    expect_number(bus.conn, n_members, "SELECT count(*) FROM commandbus.command_metadata");
}

static void finish_everything(void)
{
    member *m;

    while ((m = pick(IN_PROGRESS)) || (m = pick(IN_TSQ)) || (m = pick(PENDING))) {
        receive_some(100);
        if (m->state == IN_PROGRESS)
            settle_as(m, CB_SUCCESS);
        decide_one();
    }
}

/* BUS.5 */
Test(batch_property, counts_equal_the_rows_and_completion_comes_once_after_random_operations)
{
    static void (*const operations[])(void) = { random_batch,  random_batch,    add_to_batch,
                                                receive_few,   receive_few,     settle_random,
                                                settle_random, settle_random,   settle_random,
                                                decide_one,    expect_none_open };
    unsigned n = sizeof operations / sizeof *operations;
    seed = test_seed();

    for (int i = 0; i < OPERATIONS; i++) {
        operations[test_random(&seed, n)]();
        expect_counts(i);
    }
    finish_everything();

    expect_counts(OPERATIONS);
    expect_number(bus.conn, 0, "SELECT count(*) FROM pgmq.q_fx__commands");
    for (int b = 0; b < n_batches; b++) {
        cr_assert(is_closed(b));
        expect_number(bus.conn, 1,
                      "SELECT count(*) FROM pgmq.q_payments__replies m JOIN commandbus.batch b ON "
                      "m.message = jsonb_build_object('batch_id', b.batch_id, 'domain', b.domain, "
                      "'status', b.status, 'total', b.total, 'completed', b.completed, 'failed', "
                      "b.failed, 'canceled', b.canceled) WHERE b.batch_id = $1::uuid",
                      batches[b].text);
        expect_number(bus.conn, 1,
                      "SELECT count(*) FROM commandbus.audit WHERE event_type = 'BATCH_COMPLETED' "
                      "AND details ->> 'batch_id' = $1",
                      batches[b].text);
    }
}
