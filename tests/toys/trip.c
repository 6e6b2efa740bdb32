/* A small process. */
#include "trip.h"

#include "expect.h"
#include "gate.h"

#include <commandbus/process_request.h>

CB_FIELDS_DEFINE(trip_fields, trip, CB_FIELD(trip, steps, CB_INT), CB_FIELD(trip, go, CB_BOOL),
                 CB_FIELD(trip, hotel, CB_TEXT));

cb_outcome trip_step(cb_context *ctx, void *state)
{
    trip *t = state;

    (void)ctx;
    t->steps++;
    return CB_SUCCESS;
}

cb_outcome trip_step_at_gate(cb_context *ctx, void *state)
{
    gate_pass();
    return trip_step(ctx, state);
}

bool trip_take_hotel(void *state, json_object *result)
{
    json_object *hotel = NULL;

    return json_object_object_get_ex(result, "hotel", &hotel) &&
           cb_text_set(&((trip *)state)->hotel, json_object_get_string(hotel));
}

static bool trip_take_go(void *state, json_object *payload)
{
    trip *t = state;

    (void)payload;
    t->go = true;
    return true;
}

const cb_response trip_responses[1] = { { "go", trip_take_go } };

bool trip_may_go(const void *state)
{
    return ((const trip *)state)->go;
}

cb_uuid trip_start(const char *type)
{
    cb_error e = { 0 };
    cb_uuid id;

    expect_ok(cb_process_request_start(bus.db, type, "{}", NULL, &id, &e), e);
    return id;
}
