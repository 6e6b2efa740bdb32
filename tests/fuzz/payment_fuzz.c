/* What commands, responses and the HTTP API bring into a payment: refused, or the payment is one,
 * and what it sends can be read by its receiver.
 *
 *     the facts, one line of JSON
 *     a reply or response, one line of JSON */
#include "fuzz.h"

#include <commandbus/handler.h>
#include <json-c/json.h>

#include "json_check.h"
#include "payment_messages.h"

static json_object *parse(const char *text)
{
    return json_check(text, JSON_OBJECT, "it", NULL) ? json_tokener_parse(text) : NULL;
}

static void check_sent(const payment *p)
{
    static const struct {
        const cb_fields *fields;
        fill_fn *fill;
    } messages[] = {
        { &risk_request_fields, fill_risk },
        { &fx_request_fields, fill_fx },
        { &submit_request_fields, fill_submit_of_steps },
        { &submit_request_fields, fill_submit_of_manager },
        { &release_fx_fields, fill_release_fx },
        { &release_risk_fields, fill_release_risk },
    };

    for (size_t i = 0; i < CB_COUNT(messages); i++) {
        OWNED(json_object) data = json_object_new_object();
        void *message = cb_fields_new(messages[i].fields);
        cb_error e = { 0 };
        if (message_write(messages[i].fields, messages[i].fill, p, data))
            FUZZ_CHECK(cb_fields_read(messages[i].fields, message, data, NULL, &e), "%s",
                       e.message);
        cb_fields_free(messages[i].fields, message);
    }
}

static bool apply_first_level(payment *p, const void *message)
{
    return apply_confirmation(p, 0, message);
}

/* One that is not taken has changed nothing. */
static void check_taken(payment *p, json_object *from)
{
    static const struct {
        const cb_fields *fields;
        apply_fn *apply;
    } messages[] = {
        { &risk_reply_fields, apply_risk },          { &fx_reply_fields, apply_fx },
        { &submit_reply_fields, apply_submit },      { &approval_fields, apply_approval },
        { &confirmation_fields, apply_first_level },
    };

    for (size_t i = 0; i < CB_COUNT(messages); i++) {
        payment *before = cb_fields_new(&payment_fields);
        OWNED(json_object) changes = NULL;
        cb_error e = { 0 };

        FUZZ_CHECK(before && cb_fields_copy(&payment_fields, before, p), "no memory");
        bool taken = message_take(messages[i].fields, messages[i].apply, p, from);
        FUZZ_CHECK(cb_fields_valid(&payment_fields, p, &e), "%s", e.message);
        FUZZ_CHECK(cb_fields_diff(&payment_fields, before, p, &changes), "not comparable");
        FUZZ_CHECK(taken || !changes, "refused, but %s", json_object_to_json_string(changes));
        cb_fields_free(&payment_fields, before);
    }
}

static void check_payment(payment *p)
{
    char amount[CB_DECIMAL_TEXT];
    const char *code = NULL;
    cb_error e = { 0 };

    payment_begin(p, "0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e");
    if (!payment_check(p, &code, &e)) {
        fuzz_refused(&e, CB_INVALID_DATA);
        FUZZ_CHECK(code && *code, "no code");
        return;
    }
    FUZZ_CHECK(p->debit_amount.digits > 0 &&
                   payment_amount(&p->debit_amount, p->debit_currency, amount),
               "no amount");
    FUZZ_CHECK(strlen(p->value_date) == 10 && strcmp(p->debit_account, p->credit_account) != 0,
               "no payment");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_SPLIT(in, data, size);
    OWNED(json_object) facts = parse(fuzz_line(&in, 0));
    OWNED(json_object) reply = parse(fuzz_line(&in, 1));
    payment *p = cb_fields_new(&payment_fields);
    cb_error e = { 0 };

    FUZZ_CHECK(p, "no memory");
    if (facts && cb_fields_read(&payment_fields, p, facts, NULL, &e)) {
        check_payment(p);
        if (reply)
            check_taken(p, reply);
        check_sent(p);
    }
    cb_fields_free(&payment_fields, p);
    return 0;
}
