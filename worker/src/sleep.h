/* How long to leave a domain alone after a claim, and who is to wake us. */
#ifndef WORKER_SLEEP_H
#define WORKER_SLEEP_H

#include "engine.h"

/* A claim asked for so many and saw that many. Announces a sleeper when the domain is empty, takes it
 * back when it is busy. */
void sleep_after_claim(cb_worker *w, claim_place *p, size_t seen, size_t asked);
/* A claim failed. */
void sleep_after_failure(claim_place *p);

#endif
