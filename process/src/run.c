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
    free(run);
}

static bool begin(cb_process *p, const cb_process_row *row, const cb_run_host *host, void *arg,
                  cb_error *e)
{
    run_clear(p);
    p->row = row;
    p->host = host;
    p->host_arg = arg;
    p->thread = pthread_self();
    p->began_ms = clock_ms();
    p->type = types_find(p->types, row->process_type);
    if (!p->type)
        return cb_fail(e, CB_UNKNOWN_PROCESS_TYPE, "this program has no process type '%s'",
                       row->process_type);
    return true;
}

/* What the code of this run, or of one before it, did that it must not. */
static const char *misuse(cb_process *p)
{
    if (p->stray)
        return p->stray;
    return atomic_load(&p->from_abroad)
               ? "a call was made from another thread than the one that execute() runs on"
               : NULL;
}

void cb_run_process(cb_run *run, const cb_process_row *row, const cb_run_host *host, void *arg,
                    cb_run_result *result)
{
    cb_process *p = &run->process;
    cb_error e = { 0 };
    bool abroad = atomic_load(&p->from_abroad);
    char *before = p->stray_told ? NULL : p->stray; /* by a p that was kept */

    if (before)
        p->stray = NULL;
    *result = (cb_run_result){ .lost = true };
    bool known = begin(p, row, host, arg, &e);
    p->stray = before;
    atomic_store(&p->from_abroad, abroad);
    if (!known)
        return;
    if (!run_load(p, &e))
        run_decide_unreadable(
            p, e.code == CB_PAYLOAD_TOO_LARGE ? PARKED_PROCESS_TOO_LARGE : PARKED_PERMANENT_FAILURE,
            e.message);
    else
        run_decide(p);
    if (p->left != LEFT_LOST)
        result->lost = !item_make(p, false, &result->settlement);
    result->status = process_status_names[p->status];
    result->error_code = p->error_code;
    result->error_message = p->error_message;
    result->steps = p->steps;
    result->replayed = p->replayed;
    result->sent = p->sent;
    result->sent_to = p->sent_to;
    result->misuse = misuse(p);
    p->stray_told = true;
    atomic_store(&p->from_abroad, false);
    p->row = NULL; /* borrowed for the call */
}

void cb_run_forget(cb_run *run)
{
    cb_process *p = &run->process;
    cb_process kept = { .thread = p->thread, .stray = p->stray, .stray_told = p->stray_told };
    bool abroad = atomic_load(&p->from_abroad);

    p->stray = NULL;
    run_clear(p);
    p->thread = kept.thread;
    p->stray = kept.stray;
    p->stray_told = kept.stray_told;
    atomic_store(&p->from_abroad, abroad);
}

bool cb_run_replay(cb_run *run, const cb_process_row *row, cb_error *e)
{
    static const cb_run_host nobody = { 0 };
    cb_process *p = &run->process;

    if (!begin(p, row, &nobody, NULL, e) || !run_load(p, e))
        return false;
    run_execute(p, CHECK);
    bool agrees = p->left != LEFT_PARKED && saga_agrees(p);
    p->row = NULL;
    if (agrees)
        return true;
    cb_fail(e, CB_OK, "%s: %s", p->error_code, p->error_message);
    return false;
}
