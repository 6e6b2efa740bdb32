/* The FX API: buys one currency for another. */
#include "endpoints.h"

#include <commandbus/handler.h>
#include <stdio.h>
#include <string.h>

/* What one euro buys, in millionths; other currencies are worth as much as the euro. */
static const struct {
    const char *currency;
    int64_t per_euro;
} rates[] = {
    { "AUD", 1650000 },  { "CAD", 1480000 },   { "CHF", 955000 },  { "EUR", 1000000 },
    { "GBP", 855000 },   { "JPY", 162500000 }, { "KWD", 333000 },  { "NOK", 11600000 },
    { "SEK", 11300000 }, { "SGD", 1455000 },   { "USD", 1083700 },
};

static int64_t per_euro(const char *currency)
{
    for (size_t i = 0; i < CB_COUNT(rates); i++) {
        if (strcmp(rates[i].currency, currency) == 0)
            return rates[i].per_euro;
    }
    return 1000000;
}

static bool check_booking(const request *r, answer *refused)
{
    const char *to;
    cb_money amount;

    if (!request_money(r, "amount", "fromCurrency", &amount, refused) ||
        !request_text(r, "toCurrency", &to, refused))
        return false;
    /* Without a day it is the market's own. */
    if (json_object_object_get_ex(r->json, "valueDate", NULL) &&
        !request_day(r, "valueDate", refused))
        return false;
    if (cb_currency_exponent(to) >= 0 && strcmp(to, amount.currency) != 0)
        return true;
    *refused = answer_refusal(400, "INVALID_DATA", "\"toCurrency\" must be another currency");
    return false;
}

static answer book(simulator *s, const request *r, roll rolled, const dice *d)
{
    json_object *body;
    cb_money amount, credit;
    answer refused;
    const char *to;
    char id[32], reference[32], rate_text[CB_DECIMAL_TEXT], credit_text[CB_DECIMAL_TEXT];
    cb_error e = { 0 };

    (void)rolled;
    if (!request_money(r, "amount", "fromCurrency", &amount, &refused) ||
        !request_text(r, "toCurrency", &to, &refused))
        return refused;
    const cb_decimal rate = { per_euro(to) * 100000000 / per_euro(amount.currency), 8 };
    if (!cb_money_convert(&amount, &rate, to, &credit, &e) || !cb_decimal_print(&rate, rate_text) ||
        !cb_money_print(&credit, credit_text))
        return answer_refusal(400, "INVALID_DATA", "%s", e.message);
    /* Of the key alone, and not of its turn. */
    const dice once = { d->seed, d->key, 0 };
    snprintf(id, sizeof id, "FXC-%016llX", (unsigned long long)dice_number(&once, "contract"));
    snprintf(reference, sizeof reference, "FX-REF-%08X", (unsigned)dice_number(&once, "fx"));
    if (!bookings_add(&s->bookings[API_FX], r->key, id, ""))
        return answer_refusal(503, "TRANS_ERROR", "out of memory");
    body = json_object_new_object();
    json_object_object_add(body, "contractId", json_object_new_string(id));
    json_object_object_add(body, "reference", json_object_new_string(reference));
    json_object_object_add(body, "rate", json_object_new_string(rate_text));
    json_object_object_add(body, "creditAmount", json_object_new_string(credit_text));
    return answer_json_adopt(201, body);
}

const endpoint endpoint_fx_book = { "fx", API_FX, PLACE_FX, false, check_booking, book };
