/* Locals, Long and Letters. */
#include <stdio.h>
#include <stdlib.h>

#include "flow.h"

/* ---- Locals ---- */

static cb_outcome one(cb_context *ctx, void *state)
{
    return flow_local(ctx, state, "one");
}

static cb_outcome two(cb_context *ctx, void *state)
{
    return flow_local(ctx, state, "two");
}

static cb_outcome three(cb_context *ctx, void *state)
{
    return flow_local(ctx, state, "three");
}

/* Local steps can be retried too, and then they suspend. */
static cb_flow local_step(cb_process *p, flow *f, const char *name, cb_step_fn *run)
{
    flow_die(f, "before", name);
    CB_DO(cb_step(p, name, run, .local = true, .max_attempts = f->max_attempts,
                  .retry_delay_ms = f->retry_ms));
    flow_die(f, "after", name);
    return CB_NEXT;
}

cb_flow locals_execute(cb_process *p, void *state)
{
    flow *f = state;

    flow_begin(p, f);
    CB_DO(FLOWS_BROKEN ? local_step(p, f, "two", two) : local_step(p, f, "one", one));
    CB_DO(flow_screen(p, f));
    CB_DO(FLOWS_BROKEN ? local_step(p, f, "one", one) : local_step(p, f, "two", two));
    CB_DO(local_step(p, f, "three", three));
    return CB_DONE;
}

/* ---- Long ---- */

static cb_outcome long_step(cb_context *ctx, void *state)
{
    flow *f = state;
    char name[40];

    snprintf(name, sizeof name, "step%lld", (long long)f->current);
    f->done++;
    deed d = flow_deed(f, name);
    return deed_do(ctx, &d);
}

cb_flow long_execute(cb_process *p, void *state)
{
    flow *f = state;
    char name[40];

    flow_begin(p, f);
    for (int64_t i = 1; i <= f->n; i++) {
        f->current = i;
        snprintf(name, sizeof name, "step%lld", (long long)i);
        CB_DO(cb_step(p, name, long_step, .max_attempts = f->max_attempts,
                      .retry_delay_ms = f->retry_ms, .timeout_ms = f->step_ms));
        flow_die(f, "after", name);
    }
    return flow_screen(p, f);
}

/* ---- Letters ---- */

static bool has_letter(const void *state, int i)
{
    return ((const flow *)state)->letters[i] != NULL;
}

static bool has_l1(const void *state)
{
    return has_letter(state, 0);
}

static bool has_l2(const void *state)
{
    return has_letter(state, 1);
}

static bool has_l3(const void *state)
{
    return has_letter(state, 2);
}

static bool has_l4(const void *state)
{
    return has_letter(state, 3);
}

cb_flow letters_execute(cb_process *p, void *state)
{
    static const struct {
        const char *name;
        cb_condition_fn *has;
    } waits[LETTERS] = {
        { "awaitL1", has_l1 },
        { "awaitL2", has_l2 },
        { "awaitL3", has_l3 },
        { "awaitL4", has_l4 },
    };
    flow *f = state;

    flow_begin(p, f);
    for (int i = 0; i < LETTERS; i++) {
        int at = FLOWS_BROKEN ? LETTERS - 1 - i : i;
        flow_die(f, "before", waits[at].name);
        CB_DO(cb_wait(p, waits[at].name, waits[at].has, .timeout_ms = f->wait_ms));
        f->done++;
    }
    return flow_screen(p, f);
}
