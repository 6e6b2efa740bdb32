/* The one table that says what each SQLSTATE means to a client of the bus. */
#include "sqlstate.h"

#include <stddef.h>
#include <string.h>

/* The first entry that the SQLSTATE begins with decides: single states before their class. */
static const struct {
    const char *prefix;
    cb_code code;
} meanings[] = {
    { "CB001", CB_DUPLICATE_COMMAND },
    { "CB002", CB_COMMAND_NOT_FOUND },
    { "CB003", CB_PROCESS_NOT_FOUND },
    { "CB004", CB_BATCH_NOT_FOUND },
    { "CB005", CB_BATCH_CLOSED },
    { "CB006", CB_BATCH_EMPTY },
    { "CB007", CB_INVALID_OPERATION },
    { "CB008", CB_UNKNOWN_DOMAIN },
    { "CB009", CB_UNKNOWN_PROCESS_TYPE },
    { "CB010", CB_INVALID_NAME },
    { "CB011", CB_INVALID_DATA },
    { "CB012", CB_PAYLOAD_TOO_LARGE },
    { "CB013", CB_SCHEMA_TOO_NEW },
    { SQLSTATE_FENCE_LOST, CB_INVALID_OPERATION },
    { "08P01", CB_SERVER }, /* a statement with too few values; a pooler says FATAL with it */
    { "08", CB_LOST },
    { "22", CB_DATA },
    { "23", CB_DATA },
    { "28", CB_DENIED },
    { "42501", CB_DENIED }, /* insufficient_privilege */
    { "3F000", CB_SCHEMA }, /* no such schema, function, table or column: not our version */
    { "42883", CB_SCHEMA },
    { "42P01", CB_SCHEMA },
    { "42703", CB_SCHEMA },
    { "40", CB_AGAIN }, /* serialization failure, deadlock */
    { "53", CB_AGAIN }, /* out of connections, memory, disk */
    { "55", CB_AGAIN }, /* lock not available */
    { "57", CB_AGAIN }, /* cancelled, shutting down, starting up */
    { "58", CB_AGAIN }, /* the system failed: I/O */
};

cb_code sqlstate_code(const char *sqlstate)
{
    if (!sqlstate)
        return CB_SERVER;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (strncmp(sqlstate, meanings[i].prefix, strlen(meanings[i].prefix)) == 0)
            return meanings[i].code;
    }
    return CB_SERVER;
}

bool sqlstate_is_class(const char *sqlstate, const char *class)
{
    return sqlstate && strncmp(sqlstate, class, 2) == 0;
}

/* Of class 08 all: a pooler that has no connection to give says 08P01. */
bool sqlstate_passes(const char *sqlstate)
{
    cb_code code = sqlstate_code(sqlstate);

    return code == CB_AGAIN || code == CB_LOST || sqlstate_is_class(sqlstate, "08");
}
