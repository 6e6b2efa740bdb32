/* How a place of the simulator behaves: how often it fails and in which way, and how long it takes.
 * SIM.1 */
#ifndef SIMULATOR_BEHAVIOUR_H
#define SIMULATOR_BEHAVIOUR_H

#include <commandbus/error.h>
#include <json-c/json_object.h>
#include <stdint.h>

#include "dice.h"

/* What a call comes to, in the order in which the percentages add up. */
typedef enum {
    ROLL_PERMANENT,
    ROLL_TRANSIENT,
    ROLL_BUSINESS_RULE,
    ROLL_TIMEOUT,
    ROLL_PENDING,
    ROLL_DECLINED,
    ROLL_OK,
    ROLLS
} roll;

typedef struct {
    double percent[ROLL_OK];
    int64_t min_ms, max_ms;
    int64_t capacity; /* calls at once; 0: the place has none of its own */
    bool in_order;    /* of the network: one level after the other */
} behaviour;

/* Chaos preset: 1, 10, 3, 2 and 5 percent. */
extern const behaviour behaviour_chaos;

/* "failTransient" and so on; of ROLL_OK "ok". */
const char *roll_name(roll r);

/* Takes the fields that the object has, leaves the others as they are. Refuses (CB_INVALID_DATA)
 * what is unknown, of the wrong type, below 0, more than 100 percent in all, or a time that ends
 * before it begins; *b is then as it was. */
bool behaviour_patch(behaviour *b, json_object *patch, cb_error *e) CB_NODISCARD;
json_object *behaviour_json(const behaviour *b);

/* One roll, cumulative in the order of the enum. */
roll behaviour_roll(const behaviour *b, const dice *d);
int64_t behaviour_delay_ms(const behaviour *b, const dice *d);

#endif
