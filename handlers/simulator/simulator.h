/* Everything that the simulator has. */
#ifndef SIMULATOR_H
#define SIMULATOR_H

#include "bookings.h"
#include "network.h"
#include "pause.h"
#include "places.h"
#include "simulator_database.h"
#include "simulator_keys.h"
#include "traffic.h"

typedef enum {
    API_FX,
    API_RISK,
    API_GATEWAY,
    APIS
} api;

typedef struct {
    uint64_t seed;
    int64_t hold_ms; /* longest time that a call is held open without an answer */
    places places;
    traffic traffic[APIS];
    bookings bookings[APIS];
    keys keys;
    pauses pauses;
    database database;  /* of the network, whose answers may have to wait for a process */
    database approvals; /* of calls, which must not */
    network *network;
} simulator;

typedef struct {
    const char *database_url; /* or NULL; borrowed */
    uint64_t seed;
    int64_t hold_ms;
    int64_t capacity[APIS];
    bool chaos;
} simulator_options;

extern const char *const api_names[APIS];

bool simulator_open(simulator *s, const simulator_options *o, cb_error *e) CB_NODISCARD;
/* Calls that wait are over at once. The HTTP server stops between this and simulator_done. */
void simulator_end(simulator *s);
void simulator_done(simulator *s);

#endif
