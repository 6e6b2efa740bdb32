/* A domain with a fleet limit. */
#ifndef TEST_SUPPORT_FLEET_H
#define TEST_SUPPORT_FLEET_H

#include "claims.h"

/* A rig whose domain fx is limited (0: not), with so many commands waiting. */
rig limited_rig(int limit, size_t commands);

#endif
