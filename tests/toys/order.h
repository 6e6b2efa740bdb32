/* The manager that the tests of STEP_BASED processes run: an order.
 *
 *     create_state                       fills in the note
 *     reserve   risk/BookRisk            undone by release, risk/ReleaseRisk
 *     approve   waits for "approval"     unless the state says skip_approval; not ok: undone
 *     charge    fx/BookFx, 10 min        undone by refund, fx/ReleaseFx
 *     ship      payments/Ship
 *
 * and all but reserve again as often as `repeat` says. Its functions do what the test says. */
#ifndef TEST_TOYS_ORDER_H
#define TEST_TOYS_ORDER_H

#include "tour.h"

enum {
    RESERVE = 1,
    APPROVE,
    CHARGE,
    SHIP,
    RELEASE,
    REFUND,
    ORDER_STEPS
};

typedef struct {
    char *trail; /* a word for everything that has changed the state, in order */
    char *card;  /* redacted */
    char *note;
    int64_t risk_id, fx_id, repeat;
    bool skip_approval, approved;
} order;

extern const cb_process_type order_type;
extern const cb_process_manager order_manager;
extern const cb_manager_step order_steps[ORDER_STEPS];

/* What the functions do next, for the test to set. */
typedef struct {
    bool refuse_create, refuse_reply;
    int refuse_build;                     /* of this step */
    int first;                            /* instead of reserve; 0: that */
    void (*during)(const char *function); /* called in update_state; NULL: nothing */
} order_script;

extern order_script order_plays;
/* How often create_state and update_state were really called. */
extern int order_created, order_updated;

/* A stage for this type alone. */
stage order_open(const cb_process_type *type);
/* Serves the next command of a domain with {"id": n}. */
cb_uuid order_book(stage *s, const char *domain, int id);
/* Starts one without approval, and goes on until it waits for the reply of charge, or of ship. */
cb_uuid order_at_charge(stage *s);
cb_uuid order_at_ship(stage *s);

#endif
