/* The routes of the payments set, called as a worker would: what a refusal to start means. SIM.5. The API over HTTP is in
 * tests/fleet/payments_test.sh. */
#include "payer.h"

#include <stdio.h>

static stage s;

static void open_stage(void)
{
    s = payer_open();
}

static void close_stage(void)
{
    payer_close(&s);
}

TestSuite(payment_api, .init = open_stage, .fini = close_stage);

static const char *key_header(const cb_http_request *request, const char *name)
{
    return strcmp(name, "Idempotency-Key") == 0 ? request->arg : NULL;
}

/* "202 PENDING", or "503 CODE". Valid until the next call. */
static const char *submit(const char *key, const char *day)
{
    static char text[100];
    json_object *body = json_object_new_object(), *said = NULL;
    cb_http_answer answer = { .status = 200 };
    const struct {
        const char *name, *value;
    } facts[] = {
        { "debitAccount", "ACC-1" }, { "creditAccount", "ACC-2" }, { "amount", "100.00" },
        { "debitCurrency", "EUR" },  { "creditCurrency", "EUR" },  { "valueDate", day },
    };
    for (size_t i = 0; i < CB_COUNT(facts); i++)
        json_object_object_add(body, facts[i].name, json_object_new_string(facts[i].value));
    cb_http_request request = {
        .body = body, .db = s.rig.db, .types = s.kit.types, .header = key_header, .arg = (void *)key
    };

    payer_route("POST", "/api/payments")(&request, &answer);

    if (!json_object_object_get_ex(answer.body, "error", &said))
        json_object_object_get_ex(answer.body, "status", &said);
    snprintf(text, sizeof text, "%u %s", answer.status, json_object_get_string(said));
    json_object_put(answer.body);
    json_object_put(body);
    return text;
}

Test(payment_api, who_asks_again_hears_how_the_payment_is)
{
    cr_expect_str_eq(submit("first", "2099-01-05"), "202 WAITING_FOR_ASYNC");
    payer_serve(&s, "risk", "BookRisk", CB_BUSINESS_RULE, NULL, "BIZ_ERROR");

    cr_expect_str_eq(submit("first", "2099-01-05"), "202 COMPENSATED");

    expect_value(s.rig.sql, "1", "SELECT count(*) FROM commandbus.process");
}

/* There are other refusals than that of a process that is there: none of them is taken for a payment on its way. */
Test(payment_api, a_refusal_to_start_is_not_taken_for_a_payment_that_was_started)
{
    test_exec(
        s.rig.sql,
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
        "commandbus.refuse('INVALID_OPERATION', 'not now', 'Wait.'); END $$; "
        "CREATE TRIGGER refuse BEFORE INSERT ON commandbus.process FOR EACH ROW EXECUTE "
        "FUNCTION public.refuse()");
    cr_expect_str_eq(submit("second", "2099-01-05"), "503 NOT_STARTED");

    test_exec(s.rig.sql, "DROP TRIGGER refuse ON commandbus.process");
    cr_expect_str_eq(submit("second", "2099-01-05"), "202 WAITING_FOR_ASYNC");
    expect_value(s.rig.sql, "PROCESSING", "SELECT string_agg(status, ' ') FROM payments.payment");
}
