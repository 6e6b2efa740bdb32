/* Telling the simulator how to behave, and asking what it has seen. */
#include "control.h"

#include <string.h>

answer control_behaviour_all(simulator *s, request *r)
{
    (void)r;
    return answer_json_adopt(200, places_json(&s->places));
}

answer control_behaviour_set(simulator *s, request *r)
{
    place at = place_named(r->id);
    answer refused;
    cb_error e = { 0 };

    if (at == PLACES)
        return answer_refusal(
            404, "UNKNOWN_PLACE",
            "there are fx, fx-release, risk, risk-release, risk-approval, gateway, "
            "network and network-L1 to network-L4");
    if (!request_read(r, &refused))
        return refused;
    if (!places_patch(&s->places, at, r->json, &e))
        return answer_refusal(400, "INVALID_DATA", "%s", e.message);
    behaviour b = places_get(&s->places, at);
    return answer_json_adopt(200, behaviour_json(&b));
}

answer control_stats(simulator *s, request *r)
{
    json_object *json = json_object_new_object();

    (void)r;
    for (int i = 0; i < APIS; i++) {
        json_object *one = traffic_json(&s->traffic[i]);
        json_object_object_add(one, "bookings", bookings_counts(&s->bookings[i]));
        json_object_object_add(json, api_names[i], one);
    }
    json_object_object_add(json, "network", network_json(s->network));
    return answer_json_adopt(200, json);
}

answer control_stats_reset(simulator *s, request *r)
{
    for (int i = 0; i < APIS; i++)
        traffic_reset(&s->traffic[i]);
    network_reset(s->network);
    return control_stats(s, r);
}

answer control_bookings(simulator *s, request *r)
{
    for (int i = 0; i < APIS; i++) {
        if (strcmp(api_names[i], r->id) == 0)
            return answer_json_adopt(200, bookings_list(&s->bookings[i]));
    }
    return answer_refusal(404, "UNKNOWN_PLACE", "there are fx, risk and gateway");
}
