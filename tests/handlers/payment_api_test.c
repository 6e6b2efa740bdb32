/* The routes of the payments set, called as a worker would: what a refusal to start means. SIM.5.
 * The API over HTTP is in tests/fleet/payments_test.sh. */
#include "payer.h"
#include "proxy.h"

#include <stdio.h>

TestSuite(payment_api, .init = payer_open, .fini = payer_close);

static const char *key_header(const cb_http_request *request, const char *name)
{
    return strcmp(name, "Idempotency-Key") == 0 ? request->arg : NULL;
}

/* What a route answered: "202 PENDING", or "503 CODE"; and its message. */
typedef struct {
    char text[100], message[300];
} answered;

static void copy_member(json_object *body, const char *name, char *to, size_t size)
{
    json_object *said = NULL;

    if (json_object_object_get_ex(body, name, &said))
        snprintf(to, size, "%s", json_object_get_string(said));
}

static answered post_api(cb_db *db, const char *path, const char *key, json_object *body_adopted)
{
    cb_http_answer answer = { .status = 200 };
    cb_http_request request = { .body = body_adopted,
                                .db = db,
                                .types = payer.kit.types,
                                .header = key_header,
                                .arg = (void *)key };
    answered a = { 0 };
    char how[60] = "";

    payer_route("POST", path)(&request, &answer);
    copy_member(answer.body, "status", how, sizeof how);
    copy_member(answer.body, "error", how, sizeof how);
    copy_member(answer.body, "message", a.message, sizeof a.message);
    snprintf(a.text, sizeof a.text, "%u %s", answer.status, how);
    json_object_put(answer.body);
    json_object_put(body_adopted);
    return a;
}

static json_object *payment_on(const char *day)
{
    json_object *body = json_object_new_object();
    const struct {
        const char *name, *value;
    } facts[] = {
        { "debitAccount", "ACC-1" }, { "creditAccount", "ACC-2" }, { "amount", "100.00" },
        { "debitCurrency", "EUR" },  { "creditCurrency", "EUR" },  { "valueDate", day },
    };

    for (size_t i = 0; i < CB_COUNT(facts); i++)
        json_object_object_add(body, facts[i].name, json_object_new_string(facts[i].value));
    return body;
}

/* Valid until the next call. */
static const char *post_payment(const char *key, const char *day)
{
    static answered a;

    a = post_api(bus.db, "/api/payments", key, payment_on(day));
    return a.text;
}

Test(payment_api, a_repeated_request_is_told_the_status_of_its_payment)
{
    cr_expect_str_eq(post_payment("first", "2099-01-05"), "202 WAITING_FOR_ASYNC");
    payer_serve("risk", "BookRisk", CB_BUSINESS_RULE, NULL, "BIZ_ERROR");

    cr_expect_str_eq(post_payment("first", "2099-01-05"), "202 COMPENSATED");

    expect_value(bus.conn, "1", "SELECT count(*) FROM commandbus.process");
}

/* There are other refusals than that of a process that is there: none of them is taken for a
 * payment on its way. */
Test(payment_api, a_refusal_to_start_is_not_taken_for_a_payment_that_was_started)
{
    test_exec(
        bus.conn,
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
        "commandbus.refuse('INVALID_OPERATION', 'not now', 'Wait.'); END $$; "
        "CREATE TRIGGER refuse BEFORE INSERT ON commandbus.process FOR EACH ROW EXECUTE "
        "FUNCTION public.refuse()");
    cr_expect_str_eq(post_payment("second", "2099-01-05"), "503 NOT_STARTED");

    test_exec(bus.conn, "DROP TRIGGER refuse ON commandbus.process");
    cr_expect_str_eq(post_payment("second", "2099-01-05"), "202 WAITING_FOR_ASYNC");
    expect_value(bus.conn, "PROCESSING", "SELECT string_agg(status, ' ') FROM payments.payment");
}

/* ---- answers of the database that are lost ---- */

/* The request is made again and again, with each answer of the database lost in turn, until none is
 * left to lose. `found` selects the id of what the last request started; the test empties the
 * tables in between. Returns how often something was started and the caller was not told. */
static int lose_each_answer(const char *path, const char *key, json_object *(*body)(void),
                            const char *found, const char *code)
{
    test_proxy *proxy = test_proxy_start(bus.conninfo);
    OWNED(cb_db) db = test_bus_open(test_proxy_conninfo(proxy));
    int untold = 0, cuts;

    for (int n = 1;; n++) {
        cb_error e = { 0 };
        test_exec(bus.conn,
                  "TRUNCATE commandbus.process, commandbus.batch, payments.payment CASCADE");
        cuts = test_proxy_cuts(proxy);
        test_proxy_cut_answer(proxy, n);
        answered a = post_api(db, path, key, body());
        test_proxy_cut(proxy, PROXY_FORWARD);
        char *id = test_value(bus.conn, found, NULL);

        if (*id && strncmp(a.text, "202", 3) != 0) {
            untold++;
            cr_expect_str_eq(a.text, code, "answer %d lost: %s %s", n, a.text, a.message);
            cr_expect(key || strstr(a.message, id), "answer %d lost: it does not say which: %s", n,
                      a.message);
        }
        free(id);
        cr_assert(cb_db_reconnect(db, &e), "%s", e.message);
        if (test_proxy_cuts(proxy) == cuts)
            break;
    }
    test_proxy_stop(proxy);
    return untold;
}

static json_object *one_payment(void)
{
    return payment_on("2099-01-05");
}

static json_object *batch_of_payments(void)
{
    json_object *body = json_object_new_object(), *list = json_object_new_array();

    json_object_array_add(list, one_payment());
    json_object_array_add(list, one_payment());
    json_object_object_add(body, "payments", list);
    return body;
}

#define PROCESS_ID "SELECT coalesce((SELECT process_id::text FROM commandbus.process), '')"
#define BATCH_ID   "SELECT coalesce((SELECT batch_id::text FROM commandbus.batch), '')"

/* DESIGN 8.9. Without a key the next request pays again: a caller told to "ask again" would pay
 * twice. */
Test(payment_api, without_a_key_an_unknown_outcome_is_reported_with_the_payments_id)
{
    cr_expect_geq(
        lose_each_answer("/api/payments", NULL, one_payment, PROCESS_ID, "503 OUTCOME_UNKNOWN"), 1);
}

Test(payment_api, without_a_key_an_unknown_outcome_is_reported_with_the_batchs_id)
{
    cr_expect_geq(lose_each_answer("/api/payments/batch", NULL, batch_of_payments, BATCH_ID,
                                   "503 OUTCOME_UNKNOWN"),
                  1);
}

/* With a key it is safe to ask again, and that is what the caller is told. */
Test(payment_api, with_a_key_an_unknown_outcome_is_asked_for_again)
{
    cr_expect_geq(
        lose_each_answer("/api/payments", "key", one_payment, PROCESS_ID, "503 NOT_STARTED"), 1);
    cr_expect_geq(lose_each_answer("/api/payments/batch", "key", batch_of_payments, BATCH_ID,
                                   "503 NOT_STARTED"),
                  1);
}

/* ---- drafts ---- */

#define expect_draft(expected, id, cutoff)                                                         \
    expect_value(bus.conn, expected,                                                               \
                 "SELECT verdict FROM payments.draft($1, 'ACC-1', 'ACC-2', 100.00, 'EUR', 'EUR', " \
                 "'2099-01-05', " cutoff ")",                                                      \
                 (id).text)

Test(payment_api, a_payment_with_a_cut_off_is_the_same_unless_another_is_asked_for)
{
    cb_uuid id = cb_uuid_new();

    expect_draft("NEW", id, "'2099-01-05T10:00:00Z'");

    expect_draft("SAME", id, "NULL");
    expect_draft("SAME", id, "'2099-01-05T10:00:00Z'");
    expect_draft("OTHER", id, "'2099-01-05T11:00:00Z'");
}

/* Its process was started without the API: it has no cut-off. */
Test(payment_api, a_payment_without_a_cut_off_is_the_same_unless_one_is_asked_for)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    expect_value(bus.conn, "t", "SELECT cutoff_at IS NULL FROM payments.payment");

    expect_draft("SAME", id, "NULL");
    expect_draft("OTHER", id, "'2099-01-05T10:00:00Z'");
}
