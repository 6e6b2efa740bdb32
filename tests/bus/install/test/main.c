/* A process type and its test, as an author outside this tree writes them with the installed
 * kit. */
#include <commandbus/test.h>
#include <stdio.h>

typedef struct {
    char *quote;
    bool approved;
    cb_date paid_on;
    CB_LIST_OF(char *) receipts;
} transfer;

CB_FIELDS(transfer_fields, transfer, CB_FIELD(transfer, quote, CB_TEXT),
          CB_FIELD(transfer, approved, CB_BOOL), CB_FIELD(transfer, paid_on, CB_DATE),
          CB_FIELD_LIST(transfer, receipts, CB_TEXT, 2));

static int paid; /* how often the outside world was asked to */

static bool rate_request(const void *state, json_object *data)
{
    (void)state;
    (void)data;
    return true;
}

static bool take_rate(void *state, json_object *result)
{
    json_object *quote = NULL;

    return json_object_object_get_ex(result, "quote", &quote) &&
           cb_text_set(&((transfer *)state)->quote, json_object_get_string(quote));
}

static bool take_approval(void *state, json_object *payload)
{
    (void)payload;
    ((transfer *)state)->approved = true;
    return true;
}

static bool is_approved(const void *state)
{
    return ((const transfer *)state)->approved;
}

static cb_outcome pay(cb_context *ctx, void *state)
{
    transfer *t = state;
    char **receipt = cb_list_add(&transfer_fields, t, &t->receipts);

    paid++;
    t->paid_on = (cb_date){ 2026, 1, 31 };
    return receipt && cb_text_set(receipt, "R-1") ? CB_SUCCESS
                                                  : cb_transient(ctx, "NO_MEMORY", "again");
}

static cb_flow execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_command_step(p, "bookRate", rate_request, take_rate, .domain = "fx",
                          .command_type = "BookFx"));
    CB_DO(cb_wait(p, "awaitApproval", is_approved, .timeout_ms = CB_HOURS(2)));
    CB_DO(cb_step(p, "pay", pay, .max_attempts = 3));
    return CB_DONE;
}

static const cb_response responses[] = { { "approval", take_approval } };
static const cb_process_type type = { .name = "Transfer",
                                      .domain = "transfers",
                                      .state = &transfer_fields,
                                      .execute = execute,
                                      .responses = responses,
                                      .n_responses = 1 };
static const cb_process_type *const types[] = { &type };
static const char *const domains[] = { "fx", NULL };

/* After a crash another worker goes on. */
static bool go(cb_test *t, cb_error *e)
{
    return cb_test_go(t, NULL, e) &&
           (!t->crashed || (cb_test_restart(t, e) && cb_test_go(t, NULL, e)));
}

static bool is_paid_once(cb_test *t, cb_error *e)
{
    cb_test_answer booked = { .command_type = "BookFx", .result = "{\"quote\": \"Q-1\"}" };
    cb_uuid id;

    paid = 0;
    return cb_test_start(t, "Transfer", "{}", &id, e) && go(t, e) &&
           cb_test_serve(t, "fx", &booked, NULL, e) && go(t, e) &&
           cb_test_expect_status(t, id.text, "WAITING_FOR_ASYNC", e) &&
           cb_test_respond(t, id.text, "approval", "{}", e) && go(t, e) &&
           cb_test_expect_status(t, id.text, "COMPLETED", e) &&
           cb_test_expect_state(t, id.text, "paid_on", "2026-01-31", e) &&
           cb_test_expect_state(t, id.text, "receipts.0", "R-1", e) &&
           cb_test_expect_commands(t, id.text, "fx/BookFx COMPLETED", e) &&
           (paid >= 1 || cb_fail(e, CB_INVALID_DATA, "nobody has paid"));
}

static bool waits_two_hours(cb_test *t, cb_error *e)
{
    cb_test_answer booked = { .result = "{\"quote\": \"Q-1\"}" };
    cb_uuid id;

    return cb_test_start(t, "Transfer", "{}", &id, e) && go(t, e) &&
           cb_test_serve(t, "fx", &booked, NULL, e) && go(t, e) &&
           cb_test_wait(t, 2 * 3600 + 1, e) && go(t, e) &&
           cb_test_expect_status(t, id.text, "WAITING_FOR_TSQ WAIT_TIMEOUT", e) &&
           cb_process_cancel(t->db, id.text, "ann", "too late", true, e) && go(t, e) &&
           cb_test_expect_status(t, id.text, "CANCELED CANCELED", e);
}

int main(void)
{
    cb_error e = { 0 };
    cb_test t;
    bool ok = cb_test_open(&t, &e, .types = types, .n_types = 1, .domains = domains) &&
              waits_two_hours(&t, &e);

    /* A worker that dies after its at-th write, for every at there is. */
    for (int at = 1; ok && (at == 1 || t.durable >= at - 1); at++) {
        t.durable = 0;
        t.crash_after = at;
        ok = is_paid_once(&t, &e);
    }
    if (!ok)
        fprintf(stderr, "%s\n", e.message);
    cb_test_close(&t);
    return ok ? 0 : 1;
}
