/* Outcomes that the database does not take: the culprit goes to the TSQ, its batch is not
 * spoiled. */
#include <math.h>

#include "claims.h"

TestSuite(settle_faults, .init = bus_open, .fini = bus_close);

enum {
    N = 500
};

typedef struct {
    cb_settlement items[N];
} batch;

static void claim_batch(batch *r)
{
    test_send(bus.db, N, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", N, 60);
    cr_assert_eq(cb_claim_count(claim), N);
    for (size_t i = 0; i < N; i++)
        r->items[i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
}

/* All but `culprits` are completed with one final reply each; those are in the TSQ as
 * SETTLE_REFUSED with one reply that is not final; nothing is left in the queue. */
static void expect_the_rest_unharmed(batch *r, long culprits)
{
    char expected[128];

    for (size_t i = 0; i < N; i++)
        expect_verdict(CB_SETTLED, r->items[i].verdict);
    snprintf(expected, sizeof expected, "%ld completed, %ld refused", N - culprits, culprits);
    expect_value(
        bus.conn, expected,
        "SELECT count(*) FILTER (WHERE status = 'COMPLETED') || ' completed, ' || "
        "count(*) FILTER (WHERE status = 'IN_TROUBLESHOOTING_QUEUE' AND error_type = 'PERMANENT' "
        "AND error_code = 'SETTLE_REFUSED' AND error_message <> '') || ' refused' "
        "FROM commandbus.command_metadata");
    snprintf(expected, sizeof expected, "%ld final, %ld not, to %d", N - culprits, culprits, N);
    expect_value(bus.conn, expected,
                 "SELECT count(*) FILTER (WHERE message @> '{\"final\": true}') || ' final, ' || "
                 "count(*) FILTER (WHERE message @> '{\"final\": false}') || ' not, to ' || "
                 "count(DISTINCT message ->> 'command_id') FROM pgmq.q_payments__replies");
    snprintf(expected, sizeof expected, "0 queued %ld archived", culprits);
    expect_value(bus.conn, expected,
                 "SELECT (SELECT count(*) FROM pgmq.q_fx__commands) || ' queued ' || "
                 "(SELECT count(*) FROM pgmq.a_fx__commands) || ' archived'");
}

/* Settles a batch whose item 321 was spoiled by the caller. */
static void expect_one_refused(batch *r, cb_code code)
{
    cb_error e = { 0 };
    size_t refused = 0;

    cr_expect_not(cb_settle(bus.db, "w", r->items, N, &e));
    cr_expect_eq(e.code, code, "%s %s", cb_code_name(e.code), e.message);
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.command_metadata "
                 "WHERE status <> 'IN_PROGRESS'");

    cr_assert(cb_settle_each(bus.db, "w", r->items, N, &refused, &e), "%s", e.message);

    cr_expect_eq(refused, 1);
    expect_the_rest_unharmed(r, 1);
}

Test(settle_faults, a_result_with_a_nul_character_is_refused_alone) /* WRK.14 */
{
    batch r;
    claim_batch(&r);
    r.items[321].result = "{\"text\": \"a\\u0000b\"}";

    expect_one_refused(&r, CB_DATA);

    expect_value(bus.conn, "SENT RECEIVED MOVED_TO_TSQ",
                 "SELECT string_agg(event_type, ' ' ORDER BY at, id) FROM commandbus.audit "
                 "WHERE command_id = $1",
                 r.items[321].command_id.text);
}

Test(settle_faults, a_result_that_is_not_json_is_refused_alone) /* WRK.14 */
{
    batch r;
    claim_batch(&r);
    r.items[321].result = "{\"open\": ";

    expect_one_refused(&r, CB_DATA);
}

Test(settle_faults, a_result_in_broken_utf8_is_refused_alone) /* WRK.14 */
{
    batch r;
    claim_batch(&r);
    r.items[321].result = "{\"text\": \"\xff\xfe\"}";

    expect_one_refused(&r, CB_DATA);
}

Test(settle_faults, an_error_message_in_broken_utf8_is_refused_alone) /* WRK.14 */
{
    batch r;
    claim_batch(&r);
    r.items[321].outcome = CB_TRANSIENT;
    r.items[321].error_message = "caf\xe9";

    expect_one_refused(&r, CB_DATA);
}

Test(settle_faults, a_result_nested_too_deep_for_the_server_is_refused_alone) /* WRK.14 */
{
    batch r;
    enum {
        DEPTH = 100000
    };
    char *deep = malloc(2 * DEPTH + 2);
    claim_batch(&r);
    memset(deep, '[', DEPTH);
    deep[DEPTH] = '1';
    memset(deep + DEPTH + 1, ']', DEPTH);
    deep[2 * DEPTH + 1] = '\0';
    r.items[321].result = deep;

    expect_one_refused(&r, CB_SERVER);
    free(deep);
}

Test(settle_faults, delays_that_no_calendar_holds_are_refused_alone) /* WRK.14 */
{
    const double delays[] = { NAN, INFINITY, 1e300 };
    batch r;
    cb_error e = { 0 };
    size_t refused = 0;
    claim_batch(&r);
    for (size_t i = 0; i < 3; i++) {
        r.items[100 * i].outcome = CB_TRANSIENT;
        r.items[100 * i].retry_seconds = delays[i];
    }

    cr_assert(cb_settle_each(bus.db, "w", r.items, N, &refused, &e), "%s", e.message);

    cr_expect_eq(refused, 3);
    expect_the_rest_unharmed(&r, 3);
}

Test(settle_faults, several_culprits_are_each_found) /* WRK.14, section 8.7 */
{
    const size_t culprits[] = { 0, 1, 99, 250, 251, 252, 400, N - 1 };
    const long n = sizeof culprits / sizeof *culprits;
    batch r;
    cb_error e = { 0 };
    size_t refused = 0;
    claim_batch(&r);
    for (long i = 0; i < n; i++)
        r.items[culprits[i]].result = i % 2 ? "\"\\u0000\"" : "nonsense";

    cr_assert(cb_settle_each(bus.db, "w", r.items, N, &refused, &e), "%s", e.message);

    cr_expect_eq(refused, (size_t)n);
    expect_the_rest_unharmed(&r, n);
}

Test(settle_faults, a_stale_culprit_is_stale_and_nothing_more) /* WRK.14 */
{
    cb_error e = { 0 };
    size_t refused = 0;
    cb_uuid id;
    test_send(bus.db, 1, &id);
    OWNED(cb_claim) first = test_claim(bus.db, "late", 1, 0.05);
    OWNED(cb_claim) second = test_claim_awaited(bus.db, "heir", 1, 30);
    cb_settlement item = test_outcome(cb_claim_at(first, 0), CB_SUCCESS);
    item.result = "\"\\u0000\"";

    cr_assert(cb_settle_each(bus.db, "late", &item, 1, &refused, &e), "%s", e.message);

    expect_verdict(CB_STALE, item.verdict);
    expect_trail("SENT RECEIVED RECEIVED STALE_OUTCOME", id);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "heir",
                                               test_outcome(cb_claim_at(second, 0), CB_SUCCESS)));
}

Test(settle_faults, a_cancelled_statement_is_not_blamed_on_an_item) /* WRK.14 */
{
    batch r;
    cb_error e = { 0 };
    size_t refused = 7;
    claim_batch(&r);
    /* Every settle is cancelled: class 57, the whole batch may be brought again. */
    test_exec(bus.conn, "CREATE FUNCTION cancelled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                        "RAISE SQLSTATE '57014'; END $$");
    test_exec(bus.conn, "CREATE TRIGGER cancelled BEFORE UPDATE ON commandbus.command_metadata "
                        "FOR EACH STATEMENT EXECUTE FUNCTION cancelled()");

    cr_expect_not(cb_settle_each(bus.db, "w", r.items, N, &refused, &e));

    cr_expect_eq(e.code, CB_AGAIN, "%s", e.message);
    cr_expect_eq(refused, 0);
    test_exec(bus.conn, "DROP TRIGGER cancelled ON commandbus.command_metadata");
    cr_assert(cb_settle_each(bus.db, "w", r.items, N, &refused, &e), "%s", e.message);
    expect_the_rest_unharmed(&r, 0);
}
