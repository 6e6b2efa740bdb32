/* The payment network: confirms each submitted payment at four levels, L1 to L4, through
 * commandbus.respond. SIM.2
 *
 * One outcome for each wait. A failure is an answer too, and the last one. A level that stays
 * silent (timeout) or goes to a person (pending) holds up those behind it until somebody has
 * answered it with `commandbus process respond`. */
#ifndef SIMULATOR_NETWORK_H
#define SIMULATOR_NETWORK_H

#include "places.h"
#include "simulator_database.h"

enum {
    LEVELS = 4,
    LONGEST_MODEL = 20
};

/* What the network, or who decides about risks, has to answer. */
typedef struct {
    cb_uuid process_id, command_id;
    char execution_model[LONGEST_MODEL + 1];
    const char
        *behaviour; /* the payment's own, as places_own reads it, or NULL; borrowed for the call */
} submission;

typedef struct network network;

typedef struct {
    uint64_t seed;
    places *places;     /* borrowed, as all of these */
    database *database; /* with one behind it, if anything is submitted */
} network_options;

bool network_start(const network_options *options, network **ret, cb_error *e) CB_NODISCARD;
/* Ends its thread; payments under way are forgotten. NULL is fine. */
void network_stop(network *n);

/* A risk that was left pending. What becomes of it: ROLL_PENDING, a person decides, and the caller
 * keeps it for one; ROLL_TIMEOUT, nobody ever does; else the decision is on its way, APPROVED with
 * ROLL_OK. ROLLS: without memory. */
roll network_decide(network *n, const submission *s);

/* False without memory. */
bool network_submit(network *n, const submission *s);
/* {"sent": {"ok": …}, "waiting", "refused"} */
json_object *network_json(network *n);
void network_reset(network *n);

#endif
