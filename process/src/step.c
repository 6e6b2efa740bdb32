/* Steps: run once and for all. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_build.h"
#include "process_run.h"

static const int64_t default_timeout_ms = 30000, default_retry_ms = 1000, most_retry_ms = 300000;

/* A lease that lasts for a step also lasts until the step is settled. */
static const int64_t settle_ms = 10000;
const int64_t step_pause_ms = 1000;

static int most_attempts(const cb_step_options *o)
{
    return o->max_attempts > 0 ? o->max_attempts : 1;
}

bool step_is_exhausted_by_crash(const record *r, const cb_step_options *options)
{
    return r->status == RECORD_STARTED && r->attempts >= most_attempts(options);
}

/* ---- the context of a step ---- */

typedef struct {
    cb_process *process;
    int64_t until_ms;
} step_time;

static int64_t remaining_ms(void *arg)
{
    const step_time *t = arg;
    int64_t left = t->until_ms - clock_ms();

    return left > 0 ? left : 0;
}

static bool is_lost(void *arg)
{
    const step_time *t = arg;
    const cb_process *p = t->process;

    return clock_ms() >= t->until_ms || run_is_lost(p);
}

static bool is_stopping(void *arg)
{
    return run_is_stopping(((const step_time *)arg)->process);
}

static const cb_host step_host = { .remaining_ms = remaining_ms,
                                   .is_lost = is_lost,
                                   .is_stopping = is_stopping };

/* The key that downstream knows this step by, whichever attempt it is. Nobody else can send a
 * command with it. */
static cb_uuid step_key(const cb_process *p, const char *prefix, const char *name)
{
    char text[512];

    snprintf(text, sizeof text, "%s/%s", prefix, name);
    return cb_uuid_derived(&p->claim.row->process_id, text);
}

/* ---- one attempt ---- */

static const char step_timeout[] = "STEP_TIMEOUT";
/* What it came to does not count, but nobody knows it for a failure either. */
static const char late_unknown[] =
    "the step did not return within its timeout, and may have succeeded";

static void call_function(cb_process *p, const cb_command *as_command, cb_step_fn *run,
                          int64_t timeout_ms, record *r, cb_settlement *out, cb_context **ctx)
{
    step_time time = { p, clock_ms() + timeout_ms };
    cb_error e;

    if (!cb_context_open(as_command, &step_host, &time, ctx, &e)) {
        *out = (cb_settlement){ .outcome = CB_TRANSIENT,
                                .error_code = "INTERNAL_ERROR",
                                .error_message = "out of memory for the step" };
        return;
    }
    if (p->claim.host->stepping)
        p->claim.host->stepping(p->claim.host_arg, r->name, timeout_ms);
    whereabouts was = function_enter(p, r->name);
    int64_t began = clock_ms();
    if (!p->claim.host->instead || !p->claim.host->instead(p->claim.host_arg, r->name, out))
        cb_context_call(*ctx, run, p->state.now, out);
    int64_t took = clock_ms() - began;
    bool misused = function_return(p, was);
    if (p->claim.host->stepping)
        p->claim.host->stepping(p->claim.host_arg, NULL, 0);
    p->figures.steps++;
    r->took_ms = (double)took;
    bool failed = out->outcome != CB_SUCCESS && failure_is_known(out->error_code);
    if (misused)
        *out = (cb_settlement){ .outcome = CB_PERMANENT,
                                .error_code = "MISUSE",
                                .error_message = p->guard.stray };
    else if (took > timeout_ms)
        *out =
            (cb_settlement){ .outcome = CB_TRANSIENT,
                             .error_code = step_timeout,
                             .error_message = failed ? "the step did not return within its timeout"
                                                     : late_unknown };
}

/* 0 to 500: keeps the retries of many apart, also of those that failed in the same millisecond. */
static int64_t chance_ms(const cb_process *p)
{
    uint64_t mixed = (uint64_t)clock_ms();

    for (const char *c = p->claim.row->process_id.text; *c; c++)
        mixed = (mixed ^ (unsigned char)*c) * 1099511628211u; /* FNV-1a */
    return (int64_t)((mixed >> 32) % 501);
}

/* Seconds of a Retry-After go before the schedule. */
static int64_t retry_in_ms(const cb_process *p, const cb_step_options *o, int attempt,
                           double asked_seconds)
{
    int64_t ms = o->retry_delay_ms > 0 ? o->retry_delay_ms : default_retry_ms;

    for (int i = 1; i < attempt && ms < most_retry_ms; i++)
        ms *= 2;
    ms += chance_ms(p);
    if (ms > most_retry_ms)
        ms = most_retry_ms;
    return asked_seconds * 1000 > (double)ms ? (int64_t)(asked_seconds * 1000) : ms;
}

/* What a failure is to this process: the type may know the code better than the step. */
static cb_outcome classified(const cb_process *p, const cb_settlement *out)
{
    if (out->outcome != CB_PERMANENT)
        return out->outcome;
    switch (failure_of_permanent(p, out->error_code)) {
    case CB_FAILURE_BUSINESS_RULE:
        return CB_BUSINESS_RULE;
    case CB_FAILURE_EXHAUSTED:
        return CB_TRANSIENT;
    default:
        return CB_PERMANENT;
    }
}

/* Whether it may have succeeded all the same. */
static bool is_doubtful(const cb_settlement *out)
{
    return out->error_message == late_unknown || !failure_is_known(out->error_code);
}

static tried judge(cb_process *p, record *r, const cb_step_options *o, const cb_settlement *out)
{
    cb_outcome outcome = classified(p, out);

    if (outcome == CB_SUCCESS) {
        r->in_doubt = false;
        if (call_complete(p, r))
            return TRIED_DONE;
        r->status = RECORD_FAILED;
        record_set_text(&r->error_code, p->outcome.error_code);
        record_set_text(&r->error_message, p->outcome.error_message);
        return TRIED_FAILED;
    }
    state_restore(p);
    r->dirty = true;
    if (outcome == CB_INTERRUPTED) {
        r->attempts--;
        r->status = RECORD_RETRY;
        return TRIED_YIELDED;
    }
    record_set_text(&r->error_code, out->error_code);
    record_set_text(&r->error_message, out->error_message);
    r->in_doubt = r->in_doubt || (!o->local && is_doubtful(out));
    if (outcome == CB_TRANSIENT && r->attempts < most_attempts(o)) {
        r->status = RECORD_RETRY;
        p->outcome.timers.retry_ms = retry_in_ms(p, o, r->attempts, out->retry_seconds);
        return TRIED_AGAIN;
    }
    r->status = RECORD_FAILED;
    return outcome == CB_BUSINESS_RULE          ? TRIED_DECLINED
           : outcome != CB_TRANSIENT            ? TRIED_FAILED
           : out->error_message == late_unknown ? TRIED_TOO_LATE
                                                : TRIED_EXHAUSTED;
}

/* Durable before anything leaves this machine. */
static tried begin(cb_process *p, record *r, const cb_step_options *o, int64_t timeout_ms)
{
    r->attempts++;
    r->max_attempts = most_attempts(o);
    r->in_doubt = r->in_doubt || (!o->local && r->status == RECORD_STARTED);
    r->status = RECORD_STARTED;
    r->dirty = true;
    if (o->local)
        return TRIED_DONE;
    record_set_text(&p->outcome.step, r->name);
    record_set_text(&p->outcome.wait, NULL);
    p->outcome.step_seconds = (double)(timeout_ms + settle_ms) / 1000;
    return run_checkpoint(p) ? TRIED_DONE : TRIED_LOST;
}

tried step_try(cb_process *p, int ordinal, cb_step_fn *run, const cb_step_options *options,
               const char *key_prefix)
{
    record *r = run_at(p, ordinal);
    OWNED(cb_context) ctx = NULL;
    cb_settlement out = { .outcome = CB_SUCCESS };

    if (!options->local && run_is_stopping(p))
        return TRIED_YIELDED;
    int64_t timeout = options->timeout_ms > 0 ? options->timeout_ms : default_timeout_ms;
    tried begun = begin(p, r, options, timeout);
    if (begun != TRIED_DONE)
        return begun;
    /* A pause while that became durable may have cost the lease: somebody else may run it by
     * now. */
    if (!options->local && run_is_lost(p))
        return TRIED_LOST;
    cb_command as_command = { .command_id = step_key(p, key_prefix, r->name),
                              .correlation_id = p->claim.row->process_id,
                              .domain = p->claim.row->domain,
                              .command_type = r->name,
                              .data = "{}",
                              .lease_no = p->claim.row->lease_no,
                              .attempt = r->attempts,
                              .max_attempts = most_attempts(options),
                              .timeout_seconds = (int)((timeout + 999) / 1000) };
    call_function(p, &as_command, run, timeout, r, &out, &ctx);
    return judge(p, r, options, &out);
}

/* ---- cb_step ---- */

static cb_flow exhausted(cb_process *p, parking_code code, const record *r)
{
    return run_park(p, code, "step '%s', attempt %d: %s: %s", r->name, r->attempts,
                    r->error_code ? r->error_code : "",
                    r->error_message ? r->error_message : "no message");
}

static cb_flow wait_to_retry(cb_process *p, const record *r)
{
    p->outcome.status = STATUS_WAITING_FOR_RETRY;
    record_set_text(&p->outcome.step, r->name);
    record_set_text(&p->outcome.wait, NULL);
    p->outcome.timers.wake = WAKE_TIMERS;
    return call_leave(p, LEFT_RETRYING);
}

/* 0: it has not failed, or nobody knows that it has. */
static cb_failure_kind failure_kind(const cb_process *p, tried how, const record *r)
{
    if (p->replay.left || p->guard.misused || !failure_is_known(r->error_code))
        return 0;
    if (how == TRIED_DECLINED)
        return CB_FAILURE_BUSINESS_RULE;
    if (how == TRIED_FAILED)
        return CB_FAILURE_PERMANENT;
    if (how != TRIED_EXHAUSTED)
        return 0;
    return r->error_code && strcmp(r->error_code, step_timeout) == 0 ? CB_FAILURE_TIMEOUT
                                                                     : CB_FAILURE_EXHAUSTED;
}

/* True: the code takes the failure, if it is one; or would, and is parked: then p has left. */
static bool is_caught(cb_process *p, tried how, record *r, const cb_step_options *options)
{
    cb_failure_kind kind = failure_kind(p, how, r);
    catcher by = { .kinds = options->catch };

    if (!kind || !failure_may_be_taken(p, &by))
        return false;
    OWNED(json_object) failure = failure_new(kind, r->error_code, r->error_message, NULL);
    return failure && failure_ask(p, &by, failure) == TAKE_IT &&
           (failure_take(p, r, &by, failure), true);
}

static cb_flow after(cb_process *p, tried how, record *r, const cb_step_options *options)
{
    if (is_caught(p, how, r, options))
        return p->replay.left ? CB_LEAVE : CB_NEXT;
    switch (how) {
    case TRIED_DONE:
        if (options->compensate) {
            r->compensation = json_object_new_object();
            put(r->compensation, "inline", json_object_new_boolean(true));
        }
        compensation_register(p, r, options->compensate, options);
        return p->replay.left ? CB_LEAVE : CB_NEXT;
    case TRIED_AGAIN:
        run_fail_text(p, r->error_code, "step '%s': %s", r->name,
                      r->error_message ? r->error_message : "no message");
        return wait_to_retry(p, r);
    case TRIED_DECLINED:
        run_fail_text(p, r->error_code, "%s", r->error_message ? r->error_message : "");
        return call_leave(p, LEFT_BUSINESS);
    case TRIED_EXHAUSTED:
    case TRIED_TOO_LATE:
    case TRIED_FAILED:
        record_set_text(&p->outcome.step, r->name);
        if (p->replay.left)
            return CB_LEAVE;
        return exhausted(
            p, how == TRIED_FAILED ? PARKED_PERMANENT_FAILURE : PARKED_RETRIES_EXHAUSTED, r);
    case TRIED_YIELDED:
        if (run_is_stopping(p))
            return call_leave(p, LEFT_YIELDING);
        p->outcome.timers.retry_ms = step_pause_ms;
        return wait_to_retry(p, r);
    case TRIED_LOST:
        break;
    }
    return call_leave(p, LEFT_LOST);
}

cb_flow cb_step_with(cb_process *p, const char *name, const cb_step_options *options)
{
    record *r = NULL;

    switch (call_enter(p, KIND_STEP, name, &r)) {
    case PASSED:
        compensation_register(p, r, options->compensate, options);
        return failure_pass(p, r, &(catcher){ .kinds = options->catch });
    case REFUSED:
        return CB_LEAVE;
    case OPEN:
        if (p->replay.purpose != FORWARD)
            return call_leave(p, LEFT_FRONTIER);
        if (step_is_exhausted_by_crash(r, options))
            return run_park(p, PARKED_RETRIES_EXHAUSTED_CRASH_RECOVERY,
                            "step '%s' was started %d times and the outcome of the last attempt "
                            "is unknown: find out, then retry, complete or cancel",
                            name, r->attempts);
        break;
    case NEW:
        break;
    }
    r = call_open(p, r, KIND_STEP, name);
    if (!r)
        return CB_LEAVE;
    int ordinal = r->ordinal;
    tried how = step_try(p, ordinal, options->run, options, "step");
    return after(p, how, run_at(p, ordinal), options);
}
