/* A limit is set before anything is claimed. */
#include "fleet.h"

rig limited_rig(int limit, size_t commands)
{
    rig r = rig_open();
    cb_error e = { 0 };

    cr_assert(cb_fleet_limit_set(r.db, "fx", limit, &e), "%s", e.message);
    if (commands)
        test_send(r.db, commands, NULL);
    return r;
}
