/* The front door for tests of handlers: runs one as the worker does, without a worker.
 *
 *     OWNED(cb_context) ctx = NULL;
 *     cb_settlement out;
 *     cb_context_open(&command, NULL, NULL, &ctx, e);
 *     cb_context_run(ctx, fx_book, 0, &out);
 *     // out.outcome, out.result, out.error_code: borrowed from ctx
 */
#ifndef COMMANDBUS_HOST_H
#define COMMANDBUS_HOST_H

#include <commandbus/context.h>
#include <commandbus/db.h>
#include <commandbus/error.h>

/* ---- what a run came to ---- */

/* What the database says of an outcome that was brought to it. */
typedef enum {
    CB_SETTLED,
    CB_ALREADY, /* This fence has its outcome: a resend after a lost COMMIT. */
    CB_BUSY,    /* Somebody holds a row of it: bring it again with the next flush. */
    CB_STALE,   /* The fence was lost: audited STALE_OUTCOME, nothing changed. */
} cb_verdict;

CB_API const char *cb_verdict_name(cb_verdict verdict); /* static storage */

/* One outcome of a command. Strings are borrowed: see who fills it. */
typedef struct {
    const char *domain;
    cb_uuid command_id;
    int64_t lease_no;
    cb_outcome outcome;
    const char *result;        /* JSON value of a success, or NULL */
    const char *error_code;    /* for all but a success [INTERNAL_ERROR] */
    const char *error_message; /* or NULL */
    double retry_seconds;      /* transient and interrupted: visible again after this long */
    bool still_running;        /* a timeout: the handler keeps its place of the fleet's limit until
                                * its late outcome is settled under the same fence */

    cb_verdict verdict; /* out */
} cb_settlement;

/* What a run of a process came to, or a checkpoint of it: opaque, to be settled by who runs it. */
typedef struct cb_process_item cb_process_item;

typedef struct {
    cb_uuid process_id;
    const cb_process_item *item; /* borrowed for the call */

    cb_verdict verdict; /* out */
} cb_process_settlement;

/* ---- running a handler ---- */

/* How a context asks whoever runs it. Called on the handler's thread. A NULL function answers: no
 * end, not granted, not lost, not stopping. */
typedef struct {
    int64_t (*remaining_ms)(void *arg);
    bool (*extend)(void *arg, int64_t ms);
    bool (*is_lost)(void *arg);
    bool (*is_stopping)(void *arg);
} cb_host;

/* Borrows the command, the host (NULL: none) and its arg, which must outlive the context. */
CB_API bool cb_context_open(const cb_command *command, const cb_host *host, void *arg,
                            cb_context **ret, cb_error *e) CB_NODISCARD;
CB_API void cb_context_free(cb_context *ctx);
DEFINE_OWNED(cb_context, cb_context_free)

/* Parses the payload, calls the handler once, checks what it returned, and fills *out except for
 * the verdict; its strings are borrowed from the context. Never fails:
 *   payload that the C side cannot hold   → permanent INVALID_DATA, the handler is not entered
 *   outcome outside the enum              → transient INTERNAL_ERROR
 *   result no JSON, too deep, not finite,
 *   or over result_limit bytes [1 MiB]    → permanent RESULT_INVALID
 *   too many effects                      → permanent EFFECT_FAILED
 * retry_seconds is what cb_transient_after asked for, else 0. A context may run again; what the
 * last run left is then gone. */
CB_API void cb_context_run(cb_context *ctx, cb_handler_fn *handler, size_t result_limit,
                           cb_settlement *out);

/* The same for a function that is not a handler, such as a step of a process: no payload, no
 * result, no effects. */
typedef cb_outcome cb_call_fn(cb_context *ctx, void *arg);
CB_API void cb_context_call(cb_context *ctx, cb_call_fn *call, void *arg, cb_settlement *out);

/* How many effects the run left: 0 unless it was a success. */
CB_API size_t cb_context_effects(const cb_context *ctx);

/* Settles one success with its effects: fence, effects, settle, in one flush and one
 * transaction. A lost fence runs no effect and gives the verdict of a plain settle. On CB_LOST
 * nobody knows whether it committed, on CB_AGAIN nothing was changed: bring the same item again.
 * Waits for locks at most lock_timeout_seconds [2], then CB_AGAIN.
 *
 * An effect that the database does not take settles the command as permanent EFFECT_FAILED
 * instead, a result as SETTLE_REFUSED; the item then says so, with strings borrowed from the
 * context, and may be settled as it is from then on. Other errors (CB_DENIED, CB_SCHEMA) would
 * meet every item and are returned. Not inside a transaction of the caller's. */
CB_API bool cb_settle_with_effects(cb_db *db, const char *worker, cb_settlement *item,
                                   const cb_context *ctx, double lock_timeout_seconds,
                                   cb_error *e) CB_NODISCARD;

#endif
