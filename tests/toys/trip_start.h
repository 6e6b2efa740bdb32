/* Starting trips and looking at them, in tests with an embedded worker. */
#ifndef TEST_TOYS_TRIP_START_H
#define TEST_TOYS_TRIP_START_H

#include <commandbus/process_request.h>

#include "embed.h"

static inline cb_uuid trip_start(const char *type)
{
    cb_error e = { 0 };
    cb_uuid id;

    cr_assert(cb_process_request_start(bus.db, type, "{}", NULL, &id, &e), "%s", e.message);
    return id;
}

#define await_process(id, expected) \
    await_value(expected, "SELECT status FROM commandbus.process WHERE process_id = $1", (id).text)

/* Columns of its row, once: expect_process(id, "PENDING 0", "status, lease_no"). */
#define expect_process(id, expected, columns)                       \
    expect_value(bus.conn, expected,                                \
                 "SELECT concat_ws(' ', " columns                   \
                 ") FROM commandbus.process WHERE process_id = $1", \
                 (id).text)

#endif
