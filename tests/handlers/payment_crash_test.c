/* DESIGN 8.4 for payments: whichever moment a worker dies at, everything was sent once and released
 * once, and the payment's row is at its end. */
#include "payer.h"

TestSuite(payment_crash, .init = payer_open, .fini = payer_close);

/* Who answers next: a domain's handler, or without one the network with this error. */
typedef struct {
    const char *domain, *result;
} turn;

static const turn by_steps[] = {
    { "risk", RISK("APPROVED") },      { "fx", CONTRACT }, { "payments", "{\"reference\": \"P\"}" },
    { NULL, "{\"error\": \"AC04\"}" }, { "fx", "{}" },     { "risk", "{}" },
};
static const turn by_manager[] = {
    { "payments", NULL },
    { "risk", RISK("APPROVED") },
    { "fx", CONTRACT },
    { "payments", "{\"reference\": \"P\"}" },
    { NULL, "{\"error\": \"AC04\"}" },
    { "fx", "{}" },
    { "risk", "{}" },
    { "payments", NULL },
};
static const turn by_workflow[] = {
    { "fx", CONTRACT },
    { "risk", RISK("DECLINED") },
    { "risk", "{}" },
    { "fx", "{}" },
};

static const struct {
    const char *type, *end, *commands; /* how many, of how many types */
    const turn *turns;
    size_t n_turns;
    int least_moments;
} lives[] = {
    { "PaymentStep", "COMPENSATED L1_ERROR", "5 5", by_steps, CB_COUNT(by_steps), 8 },
    { "PaymentManager", "COMPENSATED L1_ERROR", "7 6", by_manager, CB_COUNT(by_manager), 8 },
    { "PaymentWorkflow", "COMPENSATED RISK_DECLINED", "4 4", by_workflow, CB_COUNT(by_workflow),
      6 },
};

/* True: the worker had died, and another one went on. */
static bool go_on(void)
{
    stage_go(&payer);
    if (!payer.kit.crashed)
        return false;
    stage_restart(&payer);
    stage_go(&payer);
    stage_wait(&payer, 6); /* an attempt that was lost is made again */
    stage_go(&payer);
    return true;
}

static void take_turn(const turn *t, cb_uuid id)
{
    if (t->domain)
        stage_serve(&payer, t->domain, CB_SUCCESS, t->result, NULL);
    else
        stage_respond(&payer, id, "L1", t->result);
}

/* A row as the API leaves it, so that also a manager whose marks nobody makes has one. */
static cb_uuid begin_payment(const char *type)
{
    cb_uuid id = cb_uuid_new();
    cb_process_request_options options = { .process_id = id.text };
    cb_error e;

    free(
        test_value(bus.conn,
                   "SELECT verdict FROM payments.draft($1, 'ACC-1', 'ACC-2', 100.00, 'EUR', 'USD', "
                   "'2099-01-05', NULL)",
                   id.text, NULL));
    cr_assert(
        cb_process_request_start(bus.db, type,
                                 "{\"debitAccount\": \"ACC-1\", \"creditAccount\": \"ACC-2\", "
                                 "\"debitAmount\": \"100.00\", \"debitCurrency\": \"EUR\", "
                                 "\"creditCurrency\": \"USD\", \"valueDate\": \"2099-01-05\"}",
                                 &options, &id, &e),
        "%s", e.message);
    return id;
}

Test(payment_crash, is_survived_at_every_moment)
{
    for (size_t l = 0; l < CB_COUNT(lives); l++) {
        int moment = 1;

        for (bool crashed = true; crashed; moment++) {
            payer.kit.durable = 0;
            payer.kit.crash_after = moment;
            cb_uuid id = begin_payment(lives[l].type);

            crashed = go_on();
            for (size_t i = 0; i < lives[l].n_turns; i++) {
                take_turn(&lives[l].turns[i], id);
                crashed = go_on() || crashed;
            }

            expect_status(&payer, lives[l].end, id);
            expect_payment("CANCELLED", id);
            expect_value(bus.conn, lives[l].commands,
                         "SELECT count(*) || ' ' || count(DISTINCT command_type) FROM "
                         "commandbus.command_metadata WHERE correlation_id = $1",
                         id.text);
            expect_nothing_waits();
        }
        cr_expect_gt(moment, lives[l].least_moments, "%s: only %d moments to die at", lives[l].type,
                     moment);
    }
}
