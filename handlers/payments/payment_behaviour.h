/* How the simulated world is to behave towards a payment, as S0 says it: {"bookFx":
 * {"failTransientPct": 10, …}, …}. Our own code does nothing with it but carry it to the simulator,
 * in a header of each call (SIM.1). */
#ifndef PAYMENTS_BEHAVIOUR_H
#define PAYMENTS_BEHAVIOUR_H

#include <commandbus/error.h>
#include <json-c/json_object.h>

/* Whether it is one: known steps, each with some of S0's seven fields, percentages from 0 to 100
 * that add up to no more than that, times that end after they begin. CB_INVALID_DATA says what is
 * wrong. */
bool behaviour_check(json_object *behaviour, cb_error *e) CB_NODISCARD;

#endif
