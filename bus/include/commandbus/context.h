/* What a handler is: one function. And what it may ask and say while it runs. A piece of handler.h.
 *
 *     static cb_outcome fx_book(cb_context *ctx, const cb_command *cmd, json_object **result)
 *     {
 *         ...
 *         if (declined)
 *             return cb_business_rule(ctx, "FX_DECLINED", "no quote for %s", pair);
 *         *result = contract;
 *         return CB_SUCCESS;
 *     }
 *
 * A handler may run on any thread and at the same time as itself: it keeps nothing in globals. It
 * must be idempotent: command_id is the key to give to whoever it calls. A context belongs to the
 * thread that runs the handler and ends with the call. */
#ifndef COMMANDBUS_CONTEXT_H
#define COMMANDBUS_CONTEXT_H

#include <commandbus/outcome.h>
#include <commandbus/owned.h>
#include <commandbus/uuid.h>
#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

DEFINE_OWNED(json_object, json_object_put)

/* A claimed command. Every pointer is borrowed from whoever runs it; NULL where there is no
 * value. */
typedef struct {
    cb_uuid command_id;
    cb_uuid correlation_id;
    const char *domain;
    const char *command_type;
    const char *data;     /* JSON object */
    const char *headers;  /* JSON object or NULL */
    const char *reply_to; /* or NULL */
    const char *batch_id; /* or NULL */
    int64_t msg_id;
    int64_t lease_no; /* the fence: grows with each claim */
    int attempt;      /* 1 for the first run */
    int max_attempts;
    int timeout_seconds;
    int64_t waited_us; /* from visible to claimed */
} cb_command;

typedef struct cb_context cb_context;

/* *result is NULL at entry; what a success leaves there becomes the command's result and belongs to
 * the caller, NULL stands for JSON null. A result of any other outcome is dropped. */
typedef cb_outcome cb_handler_fn(cb_context *ctx, const cb_command *command, json_object **result);

/* One line of a handler set's table. Strings live as long as the set. */
typedef struct {
    const char *command_type;
    cb_handler_fn *run;
} cb_handler;

/* The number of elements of an array, for tables of handlers. */
#define CB_COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- how a run ends: `return cb_transient(...)` ----
 *
 * A code is a word for programs [INTERNAL_ERROR], 200 bytes at most, a message a line for
 * people, 1000 at most; bytes that are no UTF-8 are replaced. They count when the outcome that
 * they came with is what the handler returns. `return CB_TRANSIENT;` alone is fine too. */

/* Try again after the backoff while attempts are left, then the TSQ. */
CB_API cb_outcome cb_transient(cb_context *ctx, const char *code, const char *fmt, ...)
    CB_PRINTF(3, 4);
/* The same, but not before `seconds` (a year at most) have passed, whatever the backoff says: a
 * Retry-After. */
CB_API cb_outcome cb_transient_after(cb_context *ctx, double seconds, const char *code,
                                     const char *fmt, ...) CB_PRINTF(4, 5);
/* No retry can help: the TSQ. */
CB_API cb_outcome cb_permanent(cb_context *ctx, const char *code, const char *fmt, ...)
    CB_PRINTF(3, 4);
/* Declined for a reason of the business: FAILED, and the sender hears of it. */
CB_API cb_outcome cb_business_rule(cb_context *ctx, const char *code, const char *fmt, ...)
    CB_PRINTF(3, 4);
/* Given back undone, for another worker to run; the attempt is refunded. Only when nothing has
 * left this machine yet. */
CB_API cb_outcome cb_interrupted(cb_context *ctx);

/* ---- what it runs on ---- */

/* The payload, parsed: always an object. Borrowed, until the handler returns. */
CB_API json_object *cb_context_data(cb_context *ctx);
/* The idempotency key of what runs: of a command its id, of a step (process, step). The same on
 * every attempt: give it to whoever is called. Borrowed. */
CB_API const char *cb_context_key(const cb_context *ctx);
CB_API int cb_context_attempt(const cb_context *ctx); /* 1 for the first run */
CB_API int cb_context_max_attempts(const cb_context *ctx);
CB_API bool cb_context_is_last_attempt(const cb_context *ctx);

/* ---- time and lease ---- */

/* How long this run may go on: until its timeout or the end of its lease, whichever comes first; 0
 * when that is over. Bound every wait by it. */
CB_API int64_t cb_context_remaining_ms(const cb_context *ctx);
/* Asks for `ms` from now on. Granted is at most one timeout from now, and ten timeouts in all since
 * the run began; false when nothing could be added. */
CB_API bool cb_context_extend(cb_context *ctx, int64_t ms);
/* True when the outcome will not count any more (lease lost, or timed out): stop, undo what can
 * be. */
CB_API bool cb_context_lost(const cb_context *ctx);
/* True when the worker wants to end. A long run may now return cb_interrupted(). */
CB_API bool cb_context_stopping(const cb_context *ctx);

/* ---- effects ---- */

/* Has a statement ($1 … $n) run with the success of this command, in one transaction with it:
 * both happen, exactly once, or neither. It begins with INSERT, UPDATE, DELETE, MERGE, WITH or
 * SELECT (of a function), and runs after the handler returned, as the worker's database role.
 * Values are copied; NULL is SQL's NULL. At most 16 statements of 32 values and 1 MiB together:
 * false beyond, and what would be a success then ends permanent as EFFECT_FAILED. */
CB_API bool cb_context_effect(cb_context *ctx, const char *sql, size_t n,
                              const char *const values[]);

#endif
