/* The process that the tests of commands and compensations run: five calls, of which two are
 * commands, and all but the last can be undone, in every way there is. Its functions do what the
 * test says.
 *
 *     prepare   step              undone by a function
 *     bookRisk  risk/BookRisk     undone by the command ReleaseRisk with the result of BookRisk
 *     quote     local step        undone by a function
 *     bookFx    fx/BookFx         undone by a function
 *     finish    step
 */
#ifndef TEST_TOYS_TOUR_H
#define TEST_TOYS_TOUR_H

#include "stage.h"

typedef struct {
    char *trail; /* a word for everything that has changed the state, in order */
    int64_t risk_id;
    int64_t fx_id;
    bool decline;      /* execute() says no at its end */
    bool wait_at_last; /* execute() waits for the response "go" at its end */
    bool gone;
} tour;

CB_FIELDS(tour_fields, tour, CB_FIELD(tour, trail, CB_TEXT), CB_FIELD(tour, risk_id, CB_INT),
          CB_FIELD(tour, fx_id, CB_INT), CB_FIELD(tour, decline, CB_BOOL),
          CB_FIELD(tour, wait_at_last, CB_BOOL), CB_FIELD(tour, gone, CB_BOOL));

extern const cb_process_type tour_type;

/* What the functions do next, for the test to set. */
typedef struct {
    cb_outcome prepare, quote, finish;
    cb_outcome undo_prepare, undo_quote, undo_fx;
    int undo_attempts;                    /* of undo_prepare; 0: one */
    bool refuse_request, refuse_result;   /* of bookRisk */
    bool without_undo_of_quote;           /* the code has changed: nothing undoes it */
    bool renamed;                         /* the code has changed: prepare has another name */
    void (*during)(const char *function); /* called in each function; NULL: nothing */
} tour_script;

extern tour_script tour_plays;

/* The functions that were really called, in order. */
extern char tour_calls[4000];

/* A stage for this type alone. */
stage tour_open(const cb_process_type *type);

/* Serves the next command of a domain with {"id":7} (risk) or {"id":8} (fx). */
cb_uuid tour_book(stage *s, const char *domain);

/* Starts one and goes on until it waits for the reply of bookRisk, or of bookFx. */
cb_uuid tour_at_risk(stage *s, const char *state);
cb_uuid tour_at_fx(stage *s, const char *state);

/* What an operator says; it must not be refused. */
void tour_retry(cb_uuid id);
void tour_cancel(cb_uuid id, bool undo);
void tour_complete(cb_uuid id, const char *overrides);

#endif
