/* BookFx {"amount": "100.00", "fromCurrency": "EUR", "toCurrency": "USD", "valueDate": "2030-01-31"}: gives back
 * {"contractId", "reference", "rate", "creditAmount"}. SIM.3 */
#include <string.h>

#include "fx.h"
#include "http_answer.h"
#include "input.h"

typedef struct {
    char *amount, *from_currency, *to_currency, *value_date;
} booking;

CB_FIELDS(booking_fields, booking, CB_FIELD(booking, amount, CB_TEXT),
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

static cb_outcome check(cb_context *ctx, const cb_command *command, const booking *b)
{
    cb_outcome outcome = input_money(ctx, b->amount, b->from_currency);

    if (outcome != CB_SUCCESS)
        return outcome;
    if (cb_currency_exponent(b->to_currency) < 0)
        return cb_permanent(ctx, "INVALID_CURRENCY", "ISO 4217 has no such currency");
    if (strcmp(b->from_currency, b->to_currency) == 0)
        return cb_permanent(ctx, "SAME_CURRENCY", "there is nothing to exchange");
    /* Later the API is asked: an earlier run may have booked, and a no of ours would leave that behind. The fence tells,
     * for who retries by hand begins with attempt 1 again. */
    return command->lease_no == 1 ? input_value_date(ctx, b->value_date) : CB_SUCCESS;
}

/* What the API says is checked like anything else from outside: a process will pay that amount, and what could not be
 * named in a release could not be given back. */
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
    return is_one ? CB_SUCCESS : http_answer_invalid(ctx, path, "the answer is no contract");
}

static cb_outcome book(cb_context *ctx, const cb_command *command, const booking *b,
                       json_object **result)
{
    OWNED(json_object) body = NULL;
    OWNED(json_object) answer = NULL;
    cb_outcome outcome = check(ctx, command, b);

    if (outcome != CB_SUCCESS)
        return outcome;
    if (!(body = cb_fields_write(&booking_fields, b)))
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    outcome = http_post(fx_client(), ctx, path, body, &answer);
    return outcome == CB_SUCCESS ? take_contract(ctx, answer, b->to_currency, result) : outcome;
}

cb_outcome fx_book(cb_context *ctx, const cb_command *command, json_object **result)
{
    void *b = NULL;
    cb_outcome outcome = input_read(ctx, &booking_fields, &b);

    if (outcome == CB_SUCCESS)
        outcome = book(ctx, command, b, result);
    cb_fields_free(&booking_fields, b);
    return outcome;
}
