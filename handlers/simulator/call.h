/* The life of a call to an API, whichever: counted, answered as the key says, or rolled, delayed
 * and done. */
#ifndef SIMULATOR_CALL_H
#define SIMULATOR_CALL_H

#include "request.h"
#include "simulator.h"

/* What an endpoint does beside that. */
typedef struct {
    const char *scope; /* of its keys */
    api api;
    place place;
    bool never_declines; /* failBusinessRule means ROLL_OK too */
    /* Whether the request makes sense; nothing is done yet. */
    bool (*check)(const request *r, answer *refused);
    /* Does it: r is ROLL_OK, or ROLL_PENDING or ROLL_DECLINED, which mean ROLL_OK where there is no
     * such answer. */
    answer (*act)(simulator *s, const request *r, roll rolled, const dice *d);
} endpoint;

answer call(simulator *s, const endpoint *at, request *r);

#endif
