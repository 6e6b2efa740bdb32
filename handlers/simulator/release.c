/* Releasing what was booked, at the FX and at the risk API. A release can fail, but is neither
 * declined nor pending. */
#include "endpoints.h"

static bool check_any(const request *r, answer *refused)
{
    (void)r;
    (void)refused;
    return true;
}

static answer release(simulator *s, api which, const request *r)
{
    bool again = false;

    if (!bookings_release(&s->bookings[which], r->id, &again))
        return answer_refusal(404, "UNKNOWN_BOOKING", "nothing was booked as %s", r->id);
    json_object *body = json_object_new_object();
    json_object_object_add(body, "released", json_object_new_string(r->id));
    json_object_object_add(body, "again", json_object_new_boolean(again));
    return answer_json_adopt(200, body);
}

static answer release_fx(simulator *s, const request *r, roll rolled, const dice *d)
{
    (void)rolled;
    (void)d;
    return release(s, API_FX, r);
}

static answer release_risk(simulator *s, const request *r, roll rolled, const dice *d)
{
    (void)rolled;
    (void)d;
    return release(s, API_RISK, r);
}

const endpoint endpoint_fx_release = { "fx-release", API_FX,    PLACE_FX_RELEASE,
                                       true,         check_any, release_fx };
const endpoint endpoint_risk_release = { "risk-release", API_RISK,  PLACE_RISK_RELEASE,
                                         true,           check_any, release_risk };
