/* The order: see order.h. */
#include "order.h"

#include <stdio.h>

order_script order_plays;
int order_created, order_updated;

static const char *const redacted[] = { "card", NULL };

CB_FIELDS(order_fields, order, CB_FIELD(order, trail, CB_TEXT), CB_FIELD(order, card, CB_TEXT),
          CB_FIELD(order, note, CB_TEXT), CB_FIELD(order, risk_id, CB_INT),
          CB_FIELD(order, fx_id, CB_INT), CB_FIELD(order, repeat, CB_INT),
          CB_FIELD(order, skip_approval, CB_BOOL), CB_FIELD(order, approved, CB_BOOL));

/* What is sent, and what comes back. */
typedef struct {
    char *card;
    int64_t id;
} booking;
CB_FIELDS(booking_fields, booking, CB_FIELD(booking, card, CB_TEXT), CB_FIELD(booking, id, CB_INT));

typedef struct {
    int64_t id;
} booked;
CB_FIELDS(booked_fields, booked, CB_FIELD(booked, id, CB_INT));

typedef struct {
    bool ok;
    char *by;
} approval;
CB_FIELDS(approval_fields, approval, CB_FIELD(approval, ok, CB_BOOL),
          CB_FIELD(approval, by, CB_TEXT));

static bool order_say(order *o, const char *word)
{
    char *longer = NULL;

    cr_assert(asprintf(&longer, "%s%s%s", o->trail ? o->trail : "", o->trail ? " " : "", word) > 0);
    free(o->trail);
    o->trail = longer;
    return true;
}

static bool order_create(void *state)
{
    order *o = state;

    order_created++;
    return !order_plays.refuse_create && cb_text_set(&o->note, "created");
}

static int order_first(const void *state)
{
    (void)state;
    return order_plays.first ? order_plays.first : RESERVE;
}

static bool order_build(int step, const void *state, void *request)
{
    const order *o = state;
    booking *b = request;

    b->id = step == RELEASE ? o->risk_id : step == REFUND ? o->fx_id : 0;
    return order_plays.refuse_build != step && cb_text_set(&b->card, o->card);
}

static bool order_update(int step, void *state, const void *reply)
{
    order *o = state;
    const booked *b = reply;
    const approval *a = reply;

    order_updated++;
    if (order_plays.during)
        order_plays.during(order_steps[step].name);
    order_say(o, order_steps[step].name);
    if (step == APPROVE)
        o->approved = a->ok;
    else if (step == RESERVE)
        o->risk_id = b->id;
    else if (step == CHARGE)
        o->fx_id = b->id;
    if (step == SHIP)
        o->repeat--;
    if (step == APPROVE && a->by && strcmp(a->by, "nobody") == 0)
        return false;
    return !order_plays.refuse_reply;
}

static int next(int step, const void *state)
{
    const order *o = state;

    switch (step) {
    case RESERVE:
        return o->skip_approval ? CHARGE : APPROVE;
    case APPROVE:
        return o->approved ? CHARGE : CB_STEP_UNDO;
    case CHARGE:
        return SHIP;
    case SHIP:
        return o->repeat <= 0 ? CB_STEP_NONE : o->skip_approval ? CHARGE : APPROVE;
    default:
        return ORDER_STEPS; /* there is no such step */
    }
}

const cb_manager_step order_steps[ORDER_STEPS] = {
    [RESERVE] = { "reserve", .command_type = "BookRisk", .domain = "risk",
                  .request = &booking_fields, .reply = &booked_fields, .compensation = RELEASE },
    [APPROVE] = { "approve", .response = "approval", .reply = &approval_fields },
    [CHARGE] = { "charge", .command_type = "BookFx", .domain = "fx", .request = &booking_fields,
                 .reply = &booked_fields, .compensation = REFUND, .timeout_ms = CB_MINUTES(10),
                 .timeout_seconds = 17, .max_attempts = 2 },
    [SHIP] = { "ship", .command_type = "Ship" },
    [RELEASE] = { "release", .command_type = "ReleaseRisk", .domain = "risk",
                  .request = &booking_fields },
    [REFUND] = { "refund", .command_type = "ReleaseFx", .domain = "fx", .request = &booking_fields,
                 .timeout_seconds = 5, .max_attempts = 7, .timeout_ms = CB_MINUTES(20) },
};

const cb_process_manager order_manager = {
    .create_state = order_create,
    .first_step = order_first,
    .build_command = order_build,
    .update_state = order_update,
    .next_step = next,
    .steps = order_steps,
    .n_steps = ORDER_STEPS,
};

const cb_process_type order_type = { .name = "Order",
                                     .domain = "payments",
                                     .state = &order_fields,
                                     .manager = &order_manager,
                                     .redact = redacted };

stage order_open(const cb_process_type *type)
{
    stage s = stage_open(&type, 1, NULL, 0);

    test_exec(bus.conn, "SELECT commandbus.register_domain(d) FROM unnest('{fx,risk}'::text[]) d");
    return s;
}

cb_uuid order_book(stage *s, const char *domain, int id)
{
    char result[40];

    snprintf(result, sizeof result, "{\"id\":%d}", id);
    return stage_serve(s, domain, CB_SUCCESS, result, NULL);
}

cb_uuid order_at_charge(stage *s)
{
    cb_uuid id = stage_start(s, "Order", "{\"skip_approval\":true,\"card\":\"4000-1234\"}");

    stage_go(s);
    order_book(s, "risk", 7);
    stage_go(s);
    return id;
}

cb_uuid order_at_ship(stage *s)
{
    cb_uuid id = order_at_charge(s);

    order_book(s, "fx", 8);
    stage_go(s);
    return id;
}
