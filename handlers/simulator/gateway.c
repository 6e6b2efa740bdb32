/* The payment gateway: takes a payment and hands it to the network. */
#include "endpoints.h"

#include <stdio.h>
#include <string.h>

static bool read_submission(const request *r, submission *s, answer *refused)
{
    const char *model;

    if (!request_uuid(r, "processId", &s->process_id, refused) ||
        !request_uuid(r, "commandId", &s->command_id, refused) ||
        !request_text(r, "executionModel", &model, refused))
        return false;
    if (strlen(model) > LONGEST_MODEL) {
        *refused = answer_refusal(400, "INVALID_DATA", "\"executionModel\" is too long");
        return false;
    }
    strcpy(s->execution_model, model);
    s->behaviour = r->behaviour;
    return true;
}

static bool check_payment(const request *r, answer *refused)
{
    submission s;
    cb_money amount;
    cb_uuid payment;
    const char *debit, *credit;

    return read_submission(r, &s, refused) && request_uuid(r, "paymentId", &payment, refused) &&
           request_money(r, "debitAmount", "debitCurrency", &amount, refused) &&
           request_money(r, "creditAmount", "creditCurrency", &amount, refused) &&
           request_text(r, "debitAccount", &debit, refused) &&
           request_text(r, "creditAccount", &credit, refused) &&
           request_day(r, "valueDate", refused);
}

static answer take(simulator *s, const request *r, roll rolled, const dice *d)
{
    const dice once = { d->seed, d->key, 0 };
    submission given;
    answer refused;
    char reference[32];

    (void)rolled;
    if (!s->database.url)
        return answer_refusal(503, "NO_DATABASE",
                              "the network answers through a database: start the simulator with "
                              "COMMANDBUS_DATABASE_URL");
    if (!read_submission(r, &given, &refused))
        return refused;
    snprintf(reference, sizeof reference, "PAY-%016llX",
             (unsigned long long)dice_number(&once, "payment"));
    if (!bookings_add(&s->bookings[API_GATEWAY], r->key, reference, "") ||
        !network_submit(s->network, &given))
        return answer_refusal(503, "TRANS_ERROR", "out of memory");
    json_object *body = json_object_new_object();
    json_object_object_add(body, "reference", json_object_new_string(reference));
    return answer_json_adopt(201, body);
}

const endpoint endpoint_gateway_pay = { "gateway", API_GATEWAY,   PLACE_GATEWAY,
                                        false,     check_payment, take };
