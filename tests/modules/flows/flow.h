/* The process types of the flows sets, all of domain payments, all with the same state.
 *
 * Five     S4's shape: validate (local) → bookFx → enrich (local) → bookRisk → execute, with
 *          ReleaseFx, ReleaseRisk and undoExecute to undo them; with "waitFor" it waits for the
 *          response "go" before execute, with "decline" the business says no behind it
 * Locals   one, two, three: local steps
 * Long     step1 … step<n>: inline steps with a line each in the log
 * Letters  waits awaitL1 … awaitL4 for the responses L1 … L4
 * Machine  a manager (STEP_BASED): bookFx → bookRisk with ReleaseFx and ReleaseRisk; "waitFor" and
 *          "decline" as Five, its "before" and "after" are in build_command and update_state;
 *          wants its "processId" in the state
 *
 * The state is what a test says, see the fields in flow.c:
 *   log, marks          see deed.h
 *   dieAt               "before:<name>", "in:<name>", "effect:<name>" or "after:<name>": before and
 *                       after are in execute(), around the call; in and effect inside a step or a
 *                       command's handler; "stop:" before it: the worker is paused there and not
 *                       killed
 *   fails, sleeps       by name of a step or command type: {"execute": "TRANSIENT:2"},
 *                       {"BookFx": 500}
 *   gates               by the same names: files that they wait for, {"BookFx": "/tmp/open"}
 *   maxAttempts, retryMs  of execute and undoExecute
 *   stepMs              the timeout of execute, and of the steps of Long
 *   waitMs              the timeout of waits and commands
 *   onDeadline          "TSQ", "COMPENSATE" or "FAIL"
 *
 * One source, three sets: flows is release 1; flows2 is release 2 of the same types, with one step
 * more, screen, behind cb_version; flows_broken has version 2 too, and another order without
 * cb_version. */
#ifndef FLOWS_FLOW_H
#define FLOWS_FLOW_H

#include <commandbus/process.h>

#include "deed.h"

#ifndef FLOWS_NAME
#define FLOWS_NAME flows
#endif
#ifndef FLOWS_VERSION
#define FLOWS_VERSION 1
#endif
#ifndef FLOWS_BROKEN
#define FLOWS_BROKEN 0
#endif

enum {
    LETTERS = 4
};

typedef struct {
    char *process_id; /* set by execute(): steps are not told */
    char *log, *marks, *die_at;
    json_object *fails, *sleeps, *gates;
    int max_attempts;
    int64_t retry_ms, step_ms, wait_ms;
    int on_deadline;
    bool wait_for, decline;
    int64_t n; /* of Long */

    /* What it came to. */
    int64_t current; /* of Long */
    int64_t done;    /* steps */
    char *fx_reference, *risk_reference;
    bool went, screened, executed, undone;
    char *letters[LETTERS];
    char *arrived; /* "L1 L3": in the order in which they came */
} flow;

extern const cb_fields flow_fields;
extern const cb_process_manager machine_manager;
cb_execute_fn five_execute, second_execute, locals_execute, long_execute, letters_execute;

/* Every execute() begins with it. */
void flow_begin(cb_process *p, flow *f);
/* The deed of this step or command type, as the state says it. */
deed flow_deed(const flow *f, const char *name);
/* "before" or "after" a call of execute(). */
void flow_die(const flow *f, const char *when, const char *name);
/* A local step: no deed but its failure, its time, its death. */
cb_outcome flow_local(cb_context *ctx, flow *f, const char *name);
/* The step that release 2 has, and release 1 has not. */
cb_flow flow_screen(cb_process *p, flow *f);

#endif
