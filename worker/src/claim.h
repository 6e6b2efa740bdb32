/* Claiming commands. */
#ifndef WORKER_CLAIM_H
#define WORKER_CLAIM_H

#include "claimer.h"

bool claims_init(cb_worker *w, cb_error *e);

#endif
