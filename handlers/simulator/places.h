/* The places that behave: each API's calls, and the levels of the network. */
#ifndef SIMULATOR_PLACES_H
#define SIMULATOR_PLACES_H

#include <pthread.h>

#include "behaviour.h"

typedef enum {
    PLACE_FX,
    PLACE_FX_RELEASE,
    PLACE_RISK,
    PLACE_RISK_RELEASE,
    PLACE_GATEWAY,
    PLACE_NETWORK,
    PLACE_L1, /* the levels follow PLACE_NETWORK until they are told otherwise */
    PLACE_L2,
    PLACE_L3,
    PLACE_L4,
    PLACE_APPROVAL, /* who decides about what risk left pending; a person, unless told otherwise */
    PLACES
} place;

typedef struct {
    pthread_mutex_t lock;
    behaviour of[PLACES];
    bool has_pending; /* a database to keep pending outcomes in */
} places;

/* As it is without being told: everything succeeds at once. */
void places_init(places *p, bool has_pending);
void places_done(places *p);

/* Nothing of the chaos preset touches times and capacities. */
void places_chaos(places *p);

behaviour places_get(places *p, place at);
/* PLACES when there is none of that name: "fx", "fx-release", "network-L1". */
place place_named(const char *name);
/* The network's is also that of its levels. */
bool places_patch(places *p, place at, json_object *patch, cb_error *e) CB_NODISCARD;
/* What a call brings for itself: `said` is text, either some of a behaviour, on top of what holds
 * there, or that of a payment, by its steps: {"bookFx": {…}, "awaitL1": {…}}. Of the latter a step
 * that is named is all that counts for its place, and one that is not stays as it is. All of it is
 * checked, whichever place it is for. */
bool places_patch_once(const places *p, behaviour *b, place at, const char *said,
                       cb_error *e) CB_NODISCARD;
/* Whether a payment brings a behaviour of its own for this place; *b is it. `said` was checked
 * before, or is NULL. */
bool places_own(places *p, place at, const char *said, behaviour *b);
json_object *places_json(places *p);

#endif
