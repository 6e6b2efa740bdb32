/* The risk API: approves a payment, declines it, or leaves it to a person. */
#include "endpoints.h"

#include <stdio.h>
#include <string.h>

static const char *const statuses[ROLLS] = {
    [ROLL_OK] = "APPROVED",
    [ROLL_PENDING] = "PENDING",
    [ROLL_DECLINED] = "DECLINED",
};

/* Scores as people expect them beside a status. */
static const struct {
    int64_t least, most;
} scores[ROLLS] = {
    [ROLL_OK] = { 0, 39 },
    [ROLL_PENDING] = { 40, 79 },
    [ROLL_DECLINED] = { 80, 100 },
};

static bool check_booking(const request *r, answer *refused)
{
    const char *debit, *credit;
    json_object *process = NULL;
    cb_uuid id;
    cb_money amount;

    if (!request_money(r, "amount", "currency", &amount, refused) ||
        !request_text(r, "debitAccount", &debit, refused) ||
        !request_text(r, "creditAccount", &credit, refused))
        return false;
    if (json_object_object_get_ex(r->json, "processId", &process) && process &&
        !request_uuid(r, "processId", &id, refused))
        return false;
    if (strcmp(debit, credit) != 0)
        return true;
    *refused = answer_refusal(400, "INVALID_DATA", "the accounts must be two");
    return false;
}

/* Somebody decides, later: the process it is for must be known, and the key be the id of the
 * command. */
static bool read_pending(const request *r, submission *ret, answer *refused)
{
    *ret = (submission){ .behaviour = r->behaviour };
    if (!request_uuid(r, "processId", &ret->process_id, refused))
        return false;
    if (cb_uuid_parse(r->key, &ret->command_id))
        return true;
    *refused = answer_refusal(400, "INVALID_DATA",
                              "of a pending booking the Idempotency-Key must be a UUID");
    return false;
}

/* A person decides, or who plays one. */
static bool leave_pending(simulator *s, const request *r, answer *refused)
{
    submission pending;
    cb_error e = { 0 };

    if (!read_pending(r, &pending, refused))
        return false;
    roll decided = network_decide(s->network, &pending);
    if (decided < ROLLS &&
        (decided != ROLL_PENDING || database_keep_approval(&s->approvals, pending.process_id.text,
                                                           pending.command_id.text, &e)))
        return true;
    fprintf(stderr, "commandbus-simulator: keeping a pending approval: %s\n",
            decided < ROLLS ? e.message : "out of memory");
    *refused = answer_refusal(503, "TRANS_ERROR", "a pending approval could not be kept");
    return false;
}

static answer book(simulator *s, const request *r, roll rolled, const dice *d)
{
    const dice once = { d->seed, d->key, 0 };
    char reference[32];
    answer refused;

    snprintf(reference, sizeof reference, "RISK-%016llX",
             (unsigned long long)dice_number(&once, "risk"));
    if (rolled == ROLL_PENDING && !leave_pending(s, r, &refused))
        return refused;
    if (!bookings_add(&s->bookings[API_RISK], r->key, reference, statuses[rolled]))
        return answer_refusal(503, "TRANS_ERROR", "out of memory");
    json_object *body = json_object_new_object();
    json_object_object_add(body, "reference", json_object_new_string(reference));
    json_object_object_add(body, "status", json_object_new_string(statuses[rolled]));
    json_object_object_add(body, "score",
                           json_object_new_int64(dice_between(&once, "score", scores[rolled].least,
                                                              scores[rolled].most)));
    return answer_json_adopt(201, body);
}

const endpoint endpoint_risk_book = { "risk", API_RISK, PLACE_RISK, false, check_booking, book };
