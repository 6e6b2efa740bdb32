/* Payments on the stage. */
#include "payer.h"

#include <commandbus/migrate.h>
#include <commandbus/set.h>
#include <limits.h>
#include <stdio.h>

static cb_set *set;

static void payer_migrate(void)
{
    char sql[PATH_MAX];
    cb_migrate_report done;
    cb_error e = { 0 };

    test_exec(bus.conn, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO "
                        "commandbus_owner', current_database()); END $$");
    snprintf(sql, sizeof sql, "%s/handlers/payments/sql", getenv("COMMANDBUS_SOURCE_DIR"));
    cr_assert(cb_migrate_set(bus.db, "payments", sql, &done, &e), "%s", e.message);
}

stage payer;

void payer_open(void)
{
    static const cb_setting nowhere = { "url", "http://127.0.0.1:9" };
    payer = stage_open(NULL, 0, NULL, 0);
    const cb_module_config config = { bus.conninfo, &nowhere, 1 };
    cb_error e = { 0 };

    payer_migrate();
    cr_assert(cb_set_load_with(getenv("COMMANDBUS_MODULES_DIR"), "payments", &config, &set, &e),
              "%s", e.message);
    const cb_module *m = cb_set_module(set);
    stage_release(&payer, m->processes, m->n_processes, NULL, 0);
}

void payer_close(void)
{
    stage_close(&payer); /* the types are the set's */
    cb_set_free(set);
    set = NULL;
}

cb_route_fn *payer_route(const char *method, const char *path)
{
    const cb_module *m = cb_set_module(set);

    for (size_t i = 0; i < m->n_routes; i++) {
        if (strcmp(m->routes[i].method, method) == 0 && strcmp(m->routes[i].path, path) == 0)
            return m->routes[i].answer;
    }
    cr_assert_fail("the payments set has no route %s %s", method, path);
    return NULL;
}

cb_uuid payer_start_with(const char *type, const char *state)
{
    cb_uuid id = stage_start(&payer, type, state);

    stage_go(&payer);
    return id;
}

cb_uuid payer_start(const char *type, const char *to_currency, double deadline_seconds)
{
    char state[500];

    snprintf(
        state, sizeof state,
        "{\"debitAccount\": \"ACC-1\", \"creditAccount\": \"ACC-2\", \"debitAmount\": \"100.00\", "
        "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"%s\", \"valueDate\": \"2099-01-05\"}",
        to_currency);
    if (deadline_seconds <= 0)
        return payer_start_with(type, state);
    cb_uuid id = stage_start_due(&payer, type, state, deadline_seconds);
    stage_go(&payer);
    return id;
}

void payer_serve(const char *domain, const char *type, cb_outcome outcome, const char *result,
                 const char *code)
{
    cb_uuid id = stage_serve(&payer, domain, outcome, result, code);

    expect_value(bus.conn, type,
                 "SELECT command_type FROM commandbus.command_metadata WHERE command_id = $1",
                 id.text);
    stage_go(&payer);
}

cb_uuid payer_submitted(const char *to_currency, double deadline_seconds)
{
    cb_uuid id = payer_start("PaymentStep", to_currency, deadline_seconds);

    payer_risk("APPROVED");
    if (strcmp(to_currency, "EUR") != 0)
        payer_fx();
    payer_submit();
    return id;
}

const char *submission(const char *execution_model, cb_uuid id)
{
    static char text[400];

    snprintf(text, sizeof text,
             "creditAccount=ACC-2 creditAmount=108.37 creditCurrency=USD debitAccount=ACC-1 "
             "debitAmount=100.00 debitCurrency=EUR executionModel=%s fxContractId=FX-1 "
             "fxRate=1.0837 paymentId=%s valueDate=2099-01-05",
             execution_model, id.text);
    return text;
}

void payer_confirm(cb_uuid id, int level, const char *payload)
{
    char name[16], reference[64];

    snprintf(name, sizeof name, "L%d", level);
    snprintf(reference, sizeof reference, "{\"reference\": \"L%d-REF-0BADCAFE\"}", level);
    stage_respond(&payer, id, name, payload ? payload : reference);
    stage_go(&payer);
}

cb_uuid payer_confirmed(const char *to_currency, int level)
{
    cb_uuid id = payer_submitted(to_currency, 0);

    for (int i = 1; i <= level; i++)
        payer_confirm(id, i, NULL);
    return id;
}

void payer_retry(cb_uuid id)
{
    cb_error e;

    cr_assert(cb_process_retry(bus.db, id.text, "ada", "again", NULL, &e), "%s", e.message);
    stage_go(&payer);
}

void payer_cancel(cb_uuid id, bool compensate)
{
    cb_error e;

    cr_assert(cb_process_cancel(bus.db, id.text, "ada", "no more", compensate, &e), "%s",
              e.message);
    stage_go(&payer);
}

void payer_complete(cb_uuid id, const char *overrides)
{
    cb_error e;

    cr_assert(cb_process_complete(bus.db, id.text, "ada", "paid by hand", overrides, &e), "%s",
              e.message);
    stage_go(&payer);
}
