/* BookRisk {"amount": "100.00", "currency": "EUR", "debitAccount": "ACC-1", "creditAccount":
 * "ACC-2"}: gives back {"reference", "status", "score"}, where status is APPROVED, PENDING (a
 * person decides) or DECLINED. SIM.3
 *
 * DECLINED is an answer and no failure: who asked decides what it means. Of a command that a
 * process sent the API is told the correlation id as processId, so that the person's decision finds
 * its process, and never another's. The amount may be a JSON number; "behaviour" goes to the
 * simulator; what else there is, as S4's processId and stepName, is left alone. */
#include <string.h>

#include "http_answer.h"
#include "input.h"
#include "risk.h"

typedef struct {
    json_object *amount; /* a text or a number */
    char *currency, *debit_account, *credit_account;
    json_object *behaviour;
} booking;

CB_FIELDS(booking_fields, booking, CB_FIELD(booking, amount, CB_JSON),
          CB_FIELD(booking, behaviour, CB_JSON), CB_FIELD(booking, currency, CB_TEXT),
          CB_FIELD_AS(booking, debit_account, CB_TEXT, "debitAccount"),
          CB_FIELD_AS(booking, credit_account, CB_TEXT, "creditAccount"));

/* 0 is an answer that has none. */
static const char *const statuses[] = { "NONE", "APPROVED", "PENDING", "DECLINED", NULL };

typedef struct {
    char *reference;
    int status;
    int64_t score;
} decision;

CB_FIELDS(decision_fields, decision, CB_FIELD(decision, reference, CB_TEXT),
          CB_FIELD_ENUM(decision, status, statuses), CB_FIELD(decision, score, CB_INT));

static const char path[] = "/risk/bookings";

static cb_outcome check(cb_context *ctx, const booking *b, const char **amount)
{
    cb_outcome outcome = input_amount(ctx, b->amount, b->currency, amount);

    if (outcome == CB_SUCCESS)
        outcome = input_account(ctx, "debitAccount", b->debit_account);
    if (outcome == CB_SUCCESS)
        outcome = input_account(ctx, "creditAccount", b->credit_account);
    if (outcome == CB_SUCCESS && strcmp(b->debit_account, b->credit_account) == 0)
        outcome = cb_permanent(ctx, "SAME_ACCOUNT", "debit and credit are one account");
    return outcome;
}

/* A reference that no release could name is none: somebody looks at that booking now. */
static cb_outcome take_decision(cb_context *ctx, json_object *answer, json_object **result)
{
    decision *d = cb_fields_new(&decision_fields);
    cb_error e = { 0 };
    bool is_one = d && cb_fields_read(&decision_fields, d, answer, NULL, &e) &&
                  input_is_reference(d->reference) && d->status > 0 &&
                  (*result = cb_fields_write(&decision_fields, d));

    cb_fields_free(&decision_fields, d);
    return is_one ? CB_SUCCESS : http_answer_invalid(ctx, path, "the answer is not a decision");
}

/* What the API is asked: the amount as a text, whichever way it came. */
static json_object *body_of(const booking *b, const char *amount)
{
    const struct {
        const char *name, *value;
    } texts[] = { { "amount", amount },
                  { "currency", b->currency },
                  { "debitAccount", b->debit_account },
                  { "creditAccount", b->credit_account } };
    json_object *body = json_object_new_object();

    for (size_t i = 0; body && i < CB_COUNT(texts); i++)
        json_object_object_add(body, texts[i].name, json_object_new_string(texts[i].value));
    return body;
}

static cb_outcome book(cb_context *ctx, const cb_command *command, const booking *b,
                       json_object **result)
{
    OWNED(json_object) body = NULL;
    OWNED(json_object) answer = NULL;
    const char *amount = NULL;
    cb_outcome outcome = check(ctx, b, &amount);

    if (outcome != CB_SUCCESS)
        return outcome;
    if (!(body = body_of(b, amount)))
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    if (cb_uuid_is_derived(&command->command_id))
        json_object_object_add(body, "processId",
                               json_object_new_string(command->correlation_id.text));
    outcome = http_post_behaving(risk_client(), ctx, path, body, b->behaviour, &answer);
    return outcome == CB_SUCCESS ? take_decision(ctx, answer, result) : outcome;
}

cb_outcome risk_book(cb_context *ctx, const cb_command *command, json_object **result)
{
    void *b = NULL;
    cb_outcome outcome = input_read(ctx, &booking_fields, NULL, &b);

    if (outcome == CB_SUCCESS)
        outcome = book(ctx, command, b, result);
    cb_fields_free(&booking_fields, b);
    return outcome;
}
