/* The other way to write a process: as a machine of steps that is driven by replies
 * (STEP_BASED).
 *
 *     enum { QUERY = 1, RENDER, REMOVE };
 *
 *     static const cb_manager_step steps[] = {
 *         [QUERY] = { "query", .command_type = "StatementQuery", .request = &query_request,
 *                     .reply = &query_reply, .compensation = REMOVE },
 *         [RENDER] = { "render", .command_type = "StatementRender", … },
 *         [REMOVE] = { "remove", .command_type = "StatementRemove", … },
 *     };
 *     static const cb_process_manager manager = {
 *         .first_step = first, .build_command = build, .update_state = update, .next_step = next,
 *         .steps = steps, .n_steps = CB_COUNT(steps),
 *     };
 *     static const cb_process_type statement_report = {
 *         .name = "StatementReport", .domain = "reporting", .state = &report_fields,
 *         .manager = &manager,
 *     };
 *
 * A step sends a command and goes on with its reply, or waits for a response that somebody gives
 * with commandbus.respond. It runs on the same engine, rows and records as a type with
 * execute(), and the same holds for its functions: they look at the state and at nothing else,
 * and may be asked again. A step may be visited again: the record of the second visit to "query"
 * is called "query#2".
 *
 * A business rule or an operator's cancel undoes the process: steps that completed and have a
 * compensation, in reverse, each after the reply of the one before. What undoes a step is built
 * and stored when that step completes, from the state of that moment. on_failure may say
 * something else.
 *
 * A response is kept from its arrival until its step takes it, in the order of arrival; each is
 * taken once. One that does not fit its table is refused when it is brought; one that
 * update_state refuses is recorded as refused, and the step waits on. Give a response_id: it is
 * what tells a repetition from a second response.
 *
 * Thread-safety: a manager is const; its functions are called by one thread for one process. */
#ifndef COMMANDBUS_MANAGER_H
#define COMMANDBUS_MANAGER_H

#include <commandbus/fields.h>
#include <stdbool.h>
#include <stdint.h>

struct cb_caught; /* process.h */

/* What first_step, next_step and on_failure may say beside the number of a step. */
enum {
    CB_STEP_NONE = 0,  /* the process is COMPLETED */
    CB_STEP_UNDO = -1, /* the business says no: what was done is undone, then COMPENSATED */
    /* Of on_failure only: */
    CB_STEP_PARK = -2,    /* the TSQ */
    CB_STEP_DEFAULT = -3, /* what happens without on_failure */
};

/* What is left out takes its default in []. Steps are numbered from 1: row 0 of the table stays
 * empty, so that 0 can mean "none". */
typedef struct {
    const char
        *name; /* required, unique: a letter, then letters, digits, _ . -; not "create_state" */
    const char *command_type; /* the step sends this, or … */
    const char *response;     /* … waits for a response of this name */
    const char *domain;       /* of the command [command-steps.<name>, else the process's own] */
    const cb_fields *request; /* the struct that build_command fills [an empty object is sent] */
    const cb_fields *reply;   /* the struct that update_state takes [it takes NULL] */
    const char
        *needs; /* of a response: fields of which one must be there, "reference error" [none] */
    int compensation; /* the step that undoes this one; it sends a command [none] */
    /* Until the reply or response: then the TSQ, COMMAND_STEP_TIMEOUT or WAIT_TIMEOUT; of a
     * compensation COMPENSATION_FAILED. [of a command none, until the deadline; of a response
     * the type's, else none] */
    int64_t timeout_ms;
    int timeout_seconds; /* of one run of the command's handler [the domain's] */
    int max_attempts;    /* of the command [the domain's] */
} cb_manager_step;

typedef struct cb_process_manager {
    /* Once, before the first step: completes what start_process was given. False:
     * PERMANENT_FAILURE. [nothing to do] */
    bool (*create_state)(void *state);
    int (*first_step)(const void *state); /* required */
    /* Fills the request of a step that sends a command; of a compensation too. False:
     * PERMANENT_FAILURE. */
    bool (*build_command)(int step, const void *state, void *request);
    /* Takes the reply to a step, or the response it waited for, into the state. False: it is not
     * what was expected, PERMANENT_FAILURE; a response is refused. Of a compensation too: it is
     * undone then, whatever is returned, but false leaves the state as it was. A reply without a
     * result is a struct of zeros. [nothing to take] */
    bool (*update_state)(int step, void *state, const void *reply);
    int (*next_step)(int step, const void *state); /* required, or … */
    /* … the same with the reply that the step got, or the response it waited for, as
     * update_state has it. */
    int (*next_step_by)(int step, const void *state, const void *reply);
    /* What becomes of a step that has failed or timed out: another step; the same one again,
     * with a new command or new time; or one of the above. It may take the failure into the
     * state. It is asked before the failure is final and then again, and must say the same to
     * the same; only the last answer is recorded and changes the state. [a business rule and an
     * operator's cancel: CB_STEP_UNDO; anything else: CB_STEP_PARK] */
    int (*on_failure)(int step, void *state, const struct cb_caught *failure);
    /* Why that was CB_STEP_UNDO behind this step (0: first_step said so): a code for programs,
     * and a line for people into `message`. [BUSINESS_FAILURE] */
    const char *(*undo_code)(int step, const void *state, char *message, size_t room);
    const cb_manager_step *steps; /* required */
    size_t n_steps;               /* with the empty row 0 */
} cb_process_manager;

#endif
