/* Runs: one claimed process after the other. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"

struct cb_run {
    cb_process process;
};

bool cb_run_open(const cb_process_types *types, cb_run **ret, cb_error *e)
{
    cb_run *run = calloc(1, sizeof *run);

    if (!run)
        return cb_fail(e, CB_MEMORY, "no memory for a run");
    run->process.types = types;
    *ret = run;
    return true;
}

void cb_run_free(cb_run *run)
{
    if (!run)
        return;
    run_clear(&run->process);
    free(run->process.guard.stray);
    free(run);
}

static bool begin(cb_process *p, const cb_process_row *row, const cb_run_host *host, void *arg,
                  cb_error *e)
{
    run_clear(p);
    if (p->guard.stray_told) {
        free(p->guard.stray);
        p->guard.stray = NULL;
    }
    p->guard.stray_told = false;
    p->guard.thread = pthread_self();
    p->claim = (run_claim){ .type = types_find(p->types, row->process_type),
                            .row = row,
                            .host = host,
                            .host_arg = arg,
                            .began_ms = clock_ms() };
    if (!p->claim.type)
        return cb_fail(e, CB_UNKNOWN_PROCESS_TYPE, "this program has no process type '%s'",
                       row->process_type);
    return true;
}

/* What the code of this run, or of one before it, did that it must not. */
static const char *misuse(cb_process *p)
{
    if (p->guard.stray)
        return p->guard.stray;
    return atomic_load(&p->guard.from_abroad)
               ? "a call was made from another thread than the one that execute() runs on"
               : NULL;
}

void cb_run_process(cb_run *run, const cb_process_row *row, const cb_run_host *host, void *arg,
                    cb_run_result *result)
{
    cb_process *p = &run->process;
    cb_error e = { 0 };

    *result = (cb_run_result){ .lost = true };
    if (!begin(p, row, host, arg, &e))
        return;
    if (!run_load(p, &e)) {
        p->claim.unreadable = e.message;
        p->claim.unreadable_code =
            e.code == CB_PAYLOAD_TOO_LARGE ? PARKED_PROCESS_TOO_LARGE : PARKED_PERMANENT_FAILURE;
    }
    run_decide(p);
    if (p->replay.left != LEFT_LOST)
        result->lost = !item_make(p, false, &result->settlement);
    result->status = process_status_names[p->outcome.status];
    result->error_code = p->outcome.error_code;
    result->error_message = p->outcome.error_message;
    result->steps = p->figures.steps;
    result->replayed = p->figures.replayed;
    result->sent = p->figures.sent;
    result->sent_to = p->figures.sent_to;
    result->misuse = misuse(p);
    p->guard.stray_told = true;
    atomic_store(&p->guard.from_abroad, false);
    p->claim.row = NULL; /* borrowed for the call */
    p->claim.unreadable = NULL;
}

void cb_run_forget(cb_run *run)
{
    run_clear(&run->process);
}

bool cb_run_replay(cb_run *run, const cb_process_row *row, cb_error *e)
{
    static const cb_run_host nobody = { 0 };
    cb_process *p = &run->process;

    if (!begin(p, row, &nobody, NULL, e) || !run_load(p, e))
        return false;
    run_execute(p, CHECK);
    bool agrees = p->replay.left != LEFT_PARKED && compensations_agree(p);
    p->claim.row = NULL;
    if (agrees)
        return true;
    cb_fail(e, CB_OK, "%s: %s", p->outcome.error_code, p->outcome.error_message);
    return false;
}
