/* A small process for tests of who runs processes: a trip that is planned, booked and paid. */
#ifndef TEST_TOYS_TRIP_H
#define TEST_TOYS_TRIP_H

#include <commandbus/run.h>
#include <stdint.h>

typedef struct {
    int64_t steps; /* that have run */
    bool go;       /* a response said so */
    char *hotel;   /* what a command brought */
} trip;

CB_FIELDS_DECLARE(trip_fields);

/* A step that counts itself in the state. */
cb_outcome trip_step(cb_context *ctx, void *state);
/* The same, but at the gate it waits. */
cb_outcome trip_step_at_gate(cb_context *ctx, void *state);
/* Takes what a command brought: {"hotel": …}. */
bool trip_take_hotel(void *state, json_object *result);
/* Takes the response "go". */
extern const cb_response trip_responses[1];
bool trip_may_go(const void *state);

/* A type of domain fx: TRIP_TYPE(walk, walk_execute, .version = 2). */
#define TRIP_TYPE(type, run, ...)                                      \
    static const cb_process_type type = { .name = #type,               \
                                          .domain = "fx",              \
                                          .state = &trip_fields,       \
                                          .responses = trip_responses, \
                                          .n_responses = 1,            \
                                          .execute = (run),            \
                                          __VA_ARGS__ }

/* ---- in tests with an embedded worker (embed.h) ---- */

/* Starts one of the fixture's bus. */
cb_uuid trip_start(const char *type);

#define await_process(expected, id) \
    await_value(expected, "SELECT status FROM commandbus.process WHERE process_id = $1", (id).text)

#endif
