/* Writing a process: plain sequential C that survives crashes.
 *
 *     static cb_flow payment_execute(cb_process *p, void *state)
 *     {
 *         payment *pay = state;
 *
 *         CB_DO(cb_step(p, "validate", validate, .local = true));
 *         CB_DO(cb_command_step(p, "bookRisk", risk_request, take_risk,
 *                               .compensate_command = "ReleaseRisk"));
 *         if (pay->risk_status == RISK_PENDING)
 *             CB_DO(cb_wait(p, "awaitRiskApproval", risk_resolved, .timeout_ms = CB_HOURS(2)));
 *         if (pay->risk_status == RISK_DECLINED)
 *             return cb_business_failure(p, "RISK_DECLINED", "%s", pay->risk_reason);
 *         return CB_DONE;
 *     }
 *
 * execute() runs again from the top whenever the process goes on. What is recorded is not done
 * again: a completed step returns at once and the state is what it was then. So execute() itself
 * must be deterministic: it branches on its state and on nothing else, and takes chance and time
 * from cb_side_effect. Everything with an outside effect belongs into a step or a command.
 *
 * Thread-safety: p belongs to the call of execute() it was given to, and to its thread. A type
 * is const. */
#ifndef COMMANDBUS_PROCESS_H
#define COMMANDBUS_PROCESS_H

#include <commandbus/batch.h>
#include <commandbus/context.h>
#include <commandbus/fields.h>
#include <commandbus/manager.h>
#include <commandbus/owned.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cb_process cb_process;

/* What execute() and every call in it return. */
typedef enum {
    CB_NEXT = 0,
    CB_DONE = CB_NEXT, /* the end of execute(): the process is COMPLETED */
    CB_LEAVE,          /* suspended or failed: leave execute() now, the runtime knows why */
} cb_flow;

/* Leaves execute() unless there is a next thing to do: suspension is a return value, so that
 * every OWNED local is released. */
#define CB_DO(expression)                \
    do {                                 \
        cb_flow cb_flow_ = (expression); \
        if (cb_flow_ != CB_NEXT)         \
            return cb_flow_;             \
    } while (0)

#define CB_SECONDS(n) ((int64_t)(n)*1000)
#define CB_MINUTES(n) ((int64_t)(n)*60000)
#define CB_HOURS(n)   ((int64_t)(n)*3600000)

/* ---- the functions of a process type; `state` is its struct ---- */

typedef cb_flow cb_execute_fn(cb_process *p, void *state);
/* A step or an inline compensation: changes the state, calls whom it must. Returns CB_SUCCESS or
 * cb_transient(ctx, …), cb_permanent(…), cb_business_rule(…), as a handler does; after anything
 * but a success the state is what it was before. */
typedef cb_outcome cb_step_fn(cb_context *ctx, void *state);
typedef bool cb_condition_fn(const void *state);
/* Fills the data of a command (an empty object at entry). False: PERMANENT_FAILURE. */
typedef bool cb_request_fn(const void *state, json_object *data);
/* Takes the result of a command into the state; result may be NULL for JSON null. False: it is
 * not what was expected, PERMANENT_FAILURE. */
typedef bool cb_take_fn(void *state, json_object *result);
/* Takes an asynchronous response into the state. False: refused; recorded, the state stays. */
typedef bool cb_response_fn(void *state, json_object *payload);

/* ---- failures that the code takes ---- */

/* What a call may catch, and what it then was. A call that catches goes on where one that does
 * not would be parked or undone, and cb_failure() says why:
 *
 *     CB_DO(cb_command_step(p, "askFirst", rate_request, take_rate, .domain = "fx",
 *                           .command_type = "Quote", .catch = true));
 *     if (cb_failure(p))
 *         CB_DO(cb_command_step(p, "askSecond", …));
 *
 * Never caught is what is not known to have failed: a step that was begun and never came back,
 * or came back with a success after its timeout; a command that may have been executed. That
 * waits for a person, as always. */
typedef enum {
    CB_FAILURE_ANY = 1,           /* only in .catch: each of these; `true` is the same */
    CB_FAILURE_BUSINESS_RULE = 2, /* the step or the handler declined it */
    CB_FAILURE_PERMANENT = 4,     /* it can never succeed */
    CB_FAILURE_EXHAUSTED = 8,     /* transient, and its attempts are used up */
    CB_FAILURE_CANCELED = 16,     /* an operator has canceled the command */
    CB_FAILURE_TIMEOUT = 32,      /* of a wait, of a command's reply, of a step */
} cb_failure_kind;

/* Strings and JSON are borrowed, until the next call of p. */
typedef struct cb_caught {
    cb_failure_kind kind;
    const char *code;
    const char *message; /* "" when there is none */
    json_object *reply; /* of a command, as it came: error_type, reason, …; NULL: there was none */
} cb_caught;

/* What became of the last call, if it failed and was caught; NULL: it has succeeded. */
CB_API const cb_caught *cb_failure(const cb_process *p);

/* `catch` is a keyword of C++, where the field is catch_. */
#ifdef __cplusplus
#define CB_CATCH catch_
#else
#define CB_CATCH catch
#endif

/* ---- steps ---- */

/* What is left out takes its default in []. */
typedef struct {
    cb_step_fn *run;        /* named by cb_step itself */
    int max_attempts;       /* [1: no retry] */
    int64_t retry_delay_ms; /* doubles with each attempt, 5 min at most [1000] */
    int64_t timeout_ms;     /* of one attempt [30000] */
    cb_step_fn *compensate; /* undoes it if the process has to be undone [nothing to undo] */
    bool local; /* no outside effect: no checkpoint of its own, may run again after a crash */
    unsigned CB_CATCH; /* the cb_failure_kinds that the code takes, or true: all [none] */
} cb_step_options;

/* cb_step(p, name, run, options…): runs `run` once and for all. Names are unique within a
 * process. */
#define cb_step(p, name, ...) cb_step_with((p), (name), &(cb_step_options){ .run = __VA_ARGS__ })
CB_API cb_flow cb_step_with(cb_process *p, const char *name, const cb_step_options *options);

/* ---- waiting ---- */

typedef struct {
    cb_condition_fn *condition; /* named by cb_wait itself */
    int64_t timeout_ms;         /* then the TSQ, WAIT_TIMEOUT [the type's] */
    unsigned CB_CATCH;          /* CB_FAILURE_TIMEOUT, or true: then the code goes on [the TSQ] */
} cb_wait_options;

/* cb_wait(p, name, condition, options…): goes on when the condition holds; it is asked again
 * whenever a response arrives. */
#define cb_wait(p, name, ...) \
    cb_wait_with((p), (name), &(cb_wait_options){ .condition = __VA_ARGS__ })
CB_API cb_flow cb_wait_with(cb_process *p, const char *name, const cb_wait_options *options);

/* ---- commands ---- */

/* What `command-steps.<name>` of the configuration says goes before what the code says. */
typedef struct {
    cb_request_fn *request;   /* named by cb_command_step itself */
    cb_take_fn *take;         /* likewise */
    const char *domain;       /* [the configuration's] */
    const char *command_type; /* [the configuration's] */
    int timeout_seconds;      /* of one run of the handler [the domain's] */
    int max_attempts;         /* [the domain's] */
    /* Until the reply: then the TSQ, COMMAND_STEP_TIMEOUT [until the deadline of the process: a
     * deep queue is backpressure and no failure]. */
    int64_t wait_timeout_ms;
    cb_step_fn *compensate;            /* undo it inline, or … */
    const char *compensate_command;    /* … by a command of this type to the same domain, */
    cb_request_fn *compensate_request; /* with this data [the result of the command] */
    unsigned CB_CATCH; /* the cb_failure_kinds that the code takes, or true: all [none] */
} cb_command_options;

/* cb_command_step(p, name, request, take, options…): sends a command and suspends until its
 * reply; `take` (NULL: nothing) takes the result. */
#define cb_command_step(p, name, requested_by, ...) \
    cb_command_step_with((p), (name),               \
                         &(cb_command_options){ .request = (requested_by), .take = __VA_ARGS__ })
CB_API cb_flow cb_command_step_with(cb_process *p, const char *name,
                                    const cb_command_options *options);

/* ---- chance, time and whatever else is not the same twice: recorded once, then always the same
 * ---- */

/* Makes the value; NULL or false: PERMANENT_FAILURE. */
typedef char *cb_make_string_fn(void *arg); /* malloc'd */
typedef json_object *cb_make_json_fn(void *arg);

/* *ret belongs to the caller: free() it. */
CB_API cb_flow cb_side_effect_string(cb_process *p, const char *name, cb_make_string_fn *make,
                                     void *arg, char **ret) CB_NODISCARD;
CB_API cb_flow cb_side_effect_uuid(cb_process *p, const char *name, cb_uuid *ret) CB_NODISCARD;
/* Milliseconds since 1970, by the database's clock. */
CB_API cb_flow cb_side_effect_time(cb_process *p, const char *name, int64_t *ret) CB_NODISCARD;
/* *ret belongs to the caller: json_object_put() it. */
CB_API cb_flow cb_side_effect_json(cb_process *p, const char *name, cb_make_json_fn *make,
                                   void *arg, json_object **ret) CB_NODISCARD;

/* ---- the rest of what execute() may say ---- */

/* The business says no: what was done is undone in reverse order, then COMPENSATED. */
CB_API cb_flow cb_business_failure(cb_process *p, const char *code, const char *fmt, ...)
    CB_PRINTF(3, 4) CB_NODISCARD;

/* Which way to go where the code has changed: `max` for a process that comes here for the first
 * time, what it was then for one that has been here, `min` for one that went by before there was
 * a choice. */
CB_API int cb_version(cb_process *p, const char *change, int min, int max);

/* Borrowed, for the call of execute(). */
CB_API const char *cb_process_id(const cb_process *p);

/* ---- the end ---- */

/* A hook. Of p it may ask the id, and send commands. */
typedef void cb_hook_fn(cb_process *p, void *state);

/* Sends a command in the transaction that ends the process: both, or neither. Nobody waits for
 * it, so it has no reply. `data` is shared; NULL: an empty object. False outside of a hook, and
 * without memory. */
CB_API bool cb_hook_send(cb_process *p, const char *domain, const char *command_type,
                         json_object *data);

/* ---- the type ---- */

typedef enum {
    CB_DEADLINE_TSQ = 0, /* an operator decides */
    CB_DEADLINE_COMPENSATE,
    CB_DEADLINE_FAIL,
} cb_deadline_action;

/* One of another name is refused when somebody brings it. */
typedef struct {
    const char *name;
    cb_response_fn *take;
} cb_response;

/* What the payload of a response holds: a value of another type, or none of the fields that it
 * needs, is refused when somebody brings it. Fields that are not in the table are kept with the
 * rest and are no reason to refuse it. Without one of these any payload is kept, and `take`
 * decides when the process runs. */
typedef struct {
    const char *response;
    const cb_fields *fields;
    /* Fields of which one must be there, "reference error"; an enum's first name does not count.
     * NULL: none. */
    const char *needs;
} cb_response_payload;

/* What is left out takes its default in []. */
typedef struct cb_process_type {
    const char *name;   /* required: a letter, then letters, digits, _ . - */
    const char *domain; /* required */
    int version; /* [1] grows with the code; older workers leave alone what a newer one wrote */
    const cb_fields *state;            /* required */
    cb_execute_fn *execute;            /* required, or … */
    const cb_process_manager *manager; /* … a machine of steps: manager.h */
    const cb_response *responses; /* of execute(); a manager's are those that its steps wait for */
    size_t n_responses;
    const cb_response_payload *payloads; /* of execute(); a manager's steps have theirs */
    size_t n_payloads;
    /* What a permanent failure of this code is to this process, a step's or a command's
     * [CB_PERMANENT]. A command has its attempts in its domain: CB_TRANSIENT there is
     * CB_FAILURE_EXHAUSTED. */
    cb_outcome (*classify)(const char *error_code);
    int64_t wait_timeout_ms; /* of waits for responses that say none [1 h; of a manager none] */
    cb_deadline_action deadline_action;
    cb_deadline_action (*deadline_action_of)(const void *state); /* goes before the value */
    /* Just before the end is recorded; they may change the state, and may run again after a
     * crash. */
    cb_hook_fn *on_completed;
    cb_hook_fn *on_canceled;
    cb_hook_fn *on_compensated;
    const char *reply_queue; /* [<domain>__replies] */
    /* Fields whose values people do not see in process_audit, process_state_document and
     * `process show`, wherever in the data they are; ends with NULL. [none] */
    const char *const *redact;
} cb_process_type;

/* ---- a program and its types ---- */

/* What `command-steps.<name>` of the configuration says. What is NULL or 0 it leaves to the
 * code. */
typedef struct {
    const char *step;
    const char *domain;
    const char *command_type;
    int timeout_seconds;
    int max_attempts;
    int64_t wait_timeout_ms; /* negative: none, whatever the code says */
} cb_step_route;

/* What `processes.<Type>` of the configuration says. */
typedef struct {
    const char *process_type;                  /* NULL: every type that says none itself */
    int64_t wait_timeout_ms;                   /* of waits for responses; 0: the code's */
    const cb_deadline_action *deadline_action; /* NULL: the code's */
    const char *reply_queue;                   /* NULL: the code's */
} cb_type_setting;

/* The types that a program can run, each checked once. Immutable after open: any thread may use
 * it. */
typedef struct cb_process_types cb_process_types;

/* Borrows types, routes and settings, which must outlive it. Refuses (CB_MISUSE) a type without
 * a name, domain, fields or execute, one that stands twice, a field table, response table or
 * manager that is not sound. */
CB_API bool cb_process_types_open(const cb_process_type *const *types, size_t n,
                                  const cb_step_route *routes, size_t n_routes,
                                  const cb_type_setting *settings, size_t n_settings,
                                  cb_process_types **ret, cb_error *e) CB_NODISCARD;
CB_API void cb_process_types_free(cb_process_types *types);
DEFINE_OWNED(cb_process_types, cb_process_types_free)
CB_API size_t cb_process_types_count(const cb_process_types *types);
/* Makes one of them known to the database, as a worker does when it starts, and cb_process_start
 * when it must. CB_UNKNOWN_PROCESS_TYPE: it is none of these. CB_INVALID_OPERATION: another
 * domain has one of that name, or its responses of this version hold something else. */
CB_API bool cb_process_types_register(cb_db *db, const cb_process_types *types, const char *type,
                                      cb_error *e) CB_NODISCARD;
/* Who runs what is started here, for people to see in the records [host-pid]. Right after open,
 * before other threads have the table. */
CB_API void cb_process_types_set_caller(cb_process_types *types, const char *name);
/* That name and something of its own, to lease by (cb_start_batch, .leased_by). */
CB_API void cb_process_types_caller(const cb_process_types *types, char *to, size_t size);

/* ---- starting ---- */

typedef struct {
    const char *process_id; /* [a new one] */
    const char *deadline;   /* as cb_process_request_start [none] */
    const char *batch_id;   /* [none] */
    bool deferred;          /* leave it to the workers [run it here until done or suspended] */
    double lease_seconds;   /* of a run here; a step's timeout must fit into it [60] */
} cb_start_options;

/* Starts a process of one of `types` with a copy of `state`. Always gives its id; how it went is
 * in the database (and for people in *status, unless NULL: static storage), not in the result:
 * false only when it could not be started at all. options may be NULL: the defaults. */
#define cb_process_start(db, types, type, state, id, status, e, ...)                          \
    cb_process_start_with((db), (types), (type), (state), &(cb_start_options){ __VA_ARGS__ }, \
                          (id), (status), (e))
CB_API bool cb_process_start_with(cb_db *db, const cb_process_types *types, const char *type,
                                  const void *state, const cb_start_options *options, cb_uuid *id,
                                  const char **status, cb_error *e) CB_NODISCARD;

/* Runs a process here that was started leased by this caller (cb_start_batch, .leased_by) until
 * it is done or suspended. *status, unless NULL, is how it went (static storage). False: the
 * lease is over, a worker has it. Not within a transaction. */
CB_API bool cb_process_run_leased(cb_db *db, const cb_process_types *types, const char *process_id,
                                  const char *leased_by, double lease_seconds, const char **status,
                                  cb_error *e);

/* Starts a process for each of n states, an array of the type's struct, as one batch: all of
 * them or none, all left to the workers. Options are those of cb_start_batch (name, reply_to,
 * …); process_type is `type`. */
#define cb_process_start_batch(db, types, type, states, n, id, e, ...) \
    cb_process_start_batch_with((db), (types), (type), (states), (n),  \
                                &(cb_start_batch_options){ __VA_ARGS__ }, (id), (e))
CB_API bool cb_process_start_batch_with(cb_db *db, const cb_process_types *types, const char *type,
                                        const void *states, size_t n,
                                        const cb_start_batch_options *options, cb_uuid *id,
                                        cb_error *e) CB_NODISCARD;

#endif
