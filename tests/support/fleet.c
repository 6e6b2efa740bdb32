/* The limit is a column of commandbus.domain. */
#include "fleet.h"

#include <stdio.h>

rig limited_rig(int limit, size_t commands)
{
    rig r = rig_open();
    char text[16];

    snprintf(text, sizeof text, "%d", limit);
    free(test_value(
        r.sql,
        "UPDATE commandbus.domain SET fleet_limit = $1::integer WHERE domain = 'fx' RETURNING 1",
        text, NULL));
    if (commands)
        test_send(r.db, commands, NULL);
    return r;
}
