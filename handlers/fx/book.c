/* BookFx {"amount": "100.00", "fromCurrency": "EUR", "toCurrency": "USD", "valueDate":
 * "2030-01-31"}: gives back {"contractId", "reference", "rate", "creditAmount"}. SIM.3. The amount
 * may be a JSON number; without a valueDate the API chooses the day; "behaviour" goes to the
 * simulator. What else there is, as S4's processId and stepName, is left alone. */
#include <string.h>

#include "fx.h"
#include "http_answer.h"
#include "input.h"

typedef struct {
    json_object *amount; /* a text or a number */
    char *from_currency, *to_currency, *value_date;
    json_object *behaviour;
} booking;

CB_FIELDS(booking_fields, booking, CB_FIELD(booking, amount, CB_JSON),
          CB_FIELD(booking, behaviour, CB_JSON),
          CB_FIELD_AS(booking, from_currency, CB_TEXT, "fromCurrency"),
          CB_FIELD_AS(booking, to_currency, CB_TEXT, "toCurrency"),
          CB_FIELD_AS(booking, value_date, CB_TEXT, "valueDate"));

typedef struct {
    char *contract_id, *reference, *credit_amount;
    cb_decimal rate;
} contract;

CB_FIELDS(contract_fields, contract, CB_FIELD_AS(contract, contract_id, CB_TEXT, "contractId"),
          CB_FIELD(contract, reference, CB_TEXT), CB_FIELD(contract, rate, CB_DECIMAL),
          CB_FIELD_AS(contract, credit_amount, CB_TEXT, "creditAmount"));

static const char path[] = "/fx/bookings";

static cb_outcome check(cb_context *ctx, const cb_command *command, const booking *b,
                        const char **amount)
{
    cb_outcome outcome = input_amount(ctx, b->amount, b->from_currency, amount);

    if (outcome != CB_SUCCESS)
        return outcome;
    if (cb_currency_exponent(b->to_currency) < 0)
        return cb_permanent(ctx, "INVALID_CURRENCY", "ISO 4217 has no such currency");
    if (strcmp(b->from_currency, b->to_currency) == 0)
        return cb_permanent(ctx, "SAME_CURRENCY", "there is nothing to exchange");
    /* Later the API is asked: an earlier run may have booked, and to refuse now would leave that
     * behind. The fence tells, for whoever retries by hand begins with attempt 1 again. */
    return command->lease_no == 1 && b->value_date ? input_value_date(ctx, b->value_date)
                                                   : CB_SUCCESS;
}

/* What the API says is checked like anything else from outside: a process will pay that amount, and
 * what could not be named in a release could not be given back. */
static bool is_contract(const contract *c, const char *currency)
{
    cb_money credit;
    cb_error e = { 0 };

    return input_is_reference(c->contract_id) && c->reference && *c->reference &&
           c->rate.digits > 0 && c->credit_amount &&
           cb_money_parse(c->credit_amount, currency, &credit, &e) && credit.minor > 0;
}

static cb_outcome take_contract(cb_context *ctx, json_object *answer, const char *currency,
                                json_object **result)
{
    contract *c = cb_fields_new(&contract_fields);
    cb_error e = { 0 };
    bool is_one = c && cb_fields_read(&contract_fields, c, answer, NULL, &e) &&
                  is_contract(c, currency) && (*result = cb_fields_write(&contract_fields, c));

    cb_fields_free(&contract_fields, c);
    return is_one ? CB_SUCCESS : http_answer_invalid(ctx, path, "the answer is not a contract");
}

/* What the API is asked: the amount as a text, whichever way it came. */
static json_object *body_of(const booking *b, const char *amount)
{
    const struct {
        const char *name, *value;
    } texts[] = { { "amount", amount },
                  { "fromCurrency", b->from_currency },
                  { "toCurrency", b->to_currency },
                  { "valueDate", b->value_date } };
    json_object *body = json_object_new_object();

    for (size_t i = 0; body && i < CB_COUNT(texts); i++) {
        if (texts[i].value)
            json_object_object_add(body, texts[i].name, json_object_new_string(texts[i].value));
    }
    return body;
}

static cb_outcome book(cb_context *ctx, const cb_command *command, const booking *b,
                       json_object **result)
{
    OWNED(json_object) body = NULL;
    OWNED(json_object) answer = NULL;
    const char *amount = NULL;
    cb_outcome outcome = check(ctx, command, b, &amount);

    if (outcome != CB_SUCCESS)
        return outcome;
    if (!(body = body_of(b, amount)))
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    outcome = http_post_behaving(fx_client(), ctx, path, body, b->behaviour, &answer);
    return outcome == CB_SUCCESS ? take_contract(ctx, answer, b->to_currency, result) : outcome;
}

cb_outcome fx_book(cb_context *ctx, const cb_command *command, json_object **result)
{
    static const char *const optional[] = { "valueDate", NULL };
    void *b = NULL;
    cb_outcome outcome = input_read(ctx, &booking_fields, optional, &b);

    if (outcome == CB_SUCCESS)
        outcome = book(ctx, command, b, result);
    cb_fields_free(&booking_fields, b);
    return outcome;
}
