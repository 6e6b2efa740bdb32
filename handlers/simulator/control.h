/* What tests and the demo ask of the simulator itself: behaviours, counters, bookings. */
#ifndef SIMULATOR_CONTROL_H
#define SIMULATOR_CONTROL_H

#include "request.h"
#include "simulator.h"

answer control_behaviour_all(simulator *s, request *r);
answer control_behaviour_set(simulator *s, request *r);
answer control_stats(simulator *s, request *r);
answer control_stats_reset(simulator *s, request *r);
answer control_bookings(simulator *s, request *r);

#endif
