/* What an API counts of the calls to it. A number here is what the fleet's limits are judged by.
 * SIM.2, RL.1
 *
 * A call is in flight from the moment its request is whole until its answer is ready, also when its
 * caller has gone meanwhile: an API works on what it was asked, and the limit has to bound that. */
#ifndef SIMULATOR_TRAFFIC_H
#define SIMULATOR_TRAFFIC_H

#include <pthread.h>

#include "behaviour.h"

typedef struct {
    pthread_mutex_t lock;
    long calls, in_flight, rejected, repeats, invalid;
    long most_in_flight; /* calls over the capacity among them, which were only turned away */
    long by_roll[ROLLS];
} traffic;

void traffic_init(traffic *t);
void traffic_done(traffic *t);

/* False: there are `capacity` calls in flight already; this one is counted as rejected and is not
 * to leave. */
bool traffic_enter(traffic *t, int64_t capacity);
void traffic_leave(traffic *t);

/* What the call came to. */
void traffic_count(traffic *t, roll r);
void traffic_count_repeat(traffic *t);
void traffic_count_invalid(traffic *t);

/* Counters to 0, most_in_flight to what is in flight now. */
void traffic_reset(traffic *t);
json_object *traffic_json(traffic *t);

#endif
