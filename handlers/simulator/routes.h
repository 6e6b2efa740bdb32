/* Who answers what. */
#ifndef SIMULATOR_ROUTES_H
#define SIMULATOR_ROUTES_H

#include "request.h"
#include "simulator.h"

/* Never fails: 404 and 405 are answers. Fills r->id from the path. */
answer routes_answer(simulator *s, const char *method, const char *path, request *r);

#endif
