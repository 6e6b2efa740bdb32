/* Putting the simulator together. */
#include "simulator.h"

#include "fail.h"

const char *const api_names[APIS] = { "fx", "risk", "gateway" };

static const place place_of_api[APIS] = { PLACE_FX, PLACE_RISK, PLACE_GATEWAY };

bool simulator_open(simulator *s, const simulator_options *o, cb_error *e)
{
    *s = (simulator){ .seed = o->seed, .hold_ms = o->hold_ms };
    places_init(&s->places, o->database_url);
    database_init(&s->database, o->database_url);
    database_init(&s->approvals, o->database_url);
    bool made = keys_init(&s->keys) && pauses_init(&s->pauses);
    for (int i = 0; i < APIS; i++) {
        traffic_init(&s->traffic[i]);
        made = bookings_init(&s->bookings[i]) && made;
        s->places.of[place_of_api[i]].capacity = o->capacity[i];
    }
    if (!made)
        return fail_memory(e);
    if (o->chaos && !o->database_url)
        return cb_fail(e, CB_MISUSE,
                       "--chaos has pending outcomes, which need a database: say "
                       "COMMANDBUS_DATABASE_URL");
    if (o->chaos)
        places_chaos(&s->places);
    return network_start(&(network_options){ o->seed, &s->places, &s->database }, &s->network, e);
}

void simulator_end(simulator *s)
{
    pauses_end(&s->pauses);
}

void simulator_done(simulator *s)
{
    network_stop(s->network);
    for (int i = 0; i < APIS; i++) {
        bookings_done(&s->bookings[i]);
        traffic_done(&s->traffic[i]);
    }
    pauses_done(&s->pauses);
    keys_done(&s->keys);
    database_done(&s->approvals);
    database_done(&s->database);
    places_done(&s->places);
}
