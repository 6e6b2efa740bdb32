/* Running a claimed process: what the worker does, and what a test of a process can do without one. */
#ifndef COMMANDBUS_RUN_H
#define COMMANDBUS_RUN_H

#include <commandbus/batch.h>
#include <commandbus/process.h>
#include <commandbus/process_request.h>
#include <commandbus/process_row.h>

/* What `command-steps.<name>` of the configuration says. What is NULL or 0 it leaves to the code. */
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

/* The types that a program can run, each checked once. Immutable after open: any thread may use it. */
typedef struct cb_process_types cb_process_types;

/* Borrows types, routes and settings, which must outlive it. Refuses (CB_MISUSE) a type without a name,
 * domain, fields or execute, one that stands twice, a field table, response table or manager that is not sound. */
CB_API bool cb_process_types_open(const cb_process_type *const *types, size_t n,
                                  const cb_step_route *routes, size_t n_routes,
                                  const cb_type_setting *settings, size_t n_settings,
                                  cb_process_types **ret, cb_error *e) CB_NODISCARD;
CB_API void cb_process_types_free(cb_process_types *types);
DEFINE_OWNED(cb_process_types, cb_process_types_free)
CB_API size_t cb_process_types_count(const cb_process_types *types);
/* Borrowed. As cb_process_register and cb_process_claim_due want it. */
CB_API const cb_process_kind *cb_process_types_kinds(const cb_process_types *types);

/* Who runs what is started here, for people to see in the records [host-pid]. Right after open, before
 * other threads have the table. */
CB_API void cb_process_types_set_caller(cb_process_types *types, const char *name);
/* That name and something of its own, to lease by (cb_start_batch, .leased_by). */
CB_API void cb_process_types_caller(const cb_process_types *types, char *to, size_t size);

/* How a run asks whoever runs it. Called on the run's thread. */
typedef struct {
    /* Makes a checkpoint durable, as cb_process_settle does, and waits for it; the lease is renewed with it.
     * False: it was not SETTLED or ALREADY, or the worker ends: the run stops, nothing more of it counts. */
    bool (*checkpoint)(void *arg, cb_process_settlement *settlement);
    /* A step begins (it may take timeout_ms) or has ended (name NULL): for timeouts that are watched. NULL: none. */
    void (*stepping)(void *arg, const char *name, int64_t timeout_ms);
    /* A wait, or the command of a command step, came to its end after so long, from when it began or was sent.
     * NULL: nobody counts. */
    void (*waited)(void *arg, bool for_command, const char *name, int64_t ms);
    /* Tests inject failures: true when *out is how this attempt of a step ends, whose function is then not
     * called. NULL: never. */
    bool (*instead)(void *arg, const char *name, cb_settlement *out);
    bool (*is_lost)(void *arg);     /* NULL: never */
    bool (*is_stopping)(void *arg); /* NULL: never */
    /* A checkpoint renews the lease for so long; 0: somebody else does. */
    double lease_seconds;
    /* The lease is kept while a step runs: it need not last for the whole of one, and if this program dies, the
     * process is taken over after lease_seconds. */
    bool renews;
} cb_run_host;

/* One run: of a process from its claim until it suspends or ends. May be used again for the next one by the
 * same thread; a `p` that somebody kept from an earlier run is then recognised and refused. */
typedef struct cb_run cb_run;

CB_API bool cb_run_open(const cb_process_types *types, cb_run **ret, cb_error *e) CB_NODISCARD;
CB_API void cb_run_free(cb_run *run);
DEFINE_OWNED(cb_run, cb_run_free)

/* What a run came to, for metrics and logs. Strings are borrowed from the run, until the next one. */
typedef struct {
    cb_process_settlement settlement; /* to be settled; its item is borrowed from the run */
    const char *status;               /* the one it leaves with */
    const char *error_code;           /* NULL when there is none */
    const char *error_message;
    int steps;           /* that ran, compensations too */
    int replayed;        /* records that were passed */
    int sent;            /* commands */
    const char *sent_to; /* the domain that they all went to; NULL: several, or none was sent */
    bool lost;           /* a checkpoint failed: nothing is to be settled */
    const char *misuse;  /* what the code did that it must not, for the log; NULL: nothing */
} cb_run_result;

/* Runs a claimed process until it suspends or ends. Never fails: what goes wrong is how it ends. The row is
 * borrowed for the call. */
CB_API void cb_run_process(cb_run *run, const cb_process_row *row, const cb_run_host *host,
                           void *arg, cb_run_result *result);

/* About so many bytes of memory a run of this row takes, by the look of its text; 0: it is not worth counting.
 * Whoever runs several at a time keeps the sum of them within what it has. */
CB_API size_t cb_run_memory(const cb_process_row *row);
/* Frees what the last run holds, which else the next one does. Its result ends with it. */
CB_API void cb_run_forget(cb_run *run);

/* Checks what is recorded against this program's code; executes nothing, writes nothing. False (CB_OK in e):
 * it would diverge, and e->message says how. */
CB_API bool cb_run_replay(cb_run *run, const cb_process_row *row, cb_error *e) CB_NODISCARD;

/* ---- starting ---- */

typedef struct {
    const char *process_id; /* [a new one] */
    const char *deadline;   /* as cb_process_request_start [none] */
    const char *batch_id;   /* [none] */
    bool deferred;          /* leave it to the workers [run it here until done or suspended] */
    double lease_seconds;   /* of a run here; a step's timeout must fit into it [60] */
} cb_start_options;

/* Starts a process of one of `types` with a copy of `state`. Always gives its id; how it went is in the
 * database (and for people in *status, unless NULL: static storage), not in the result: false only when it
 * could not be started at all. options may be NULL: the defaults. */
#define cb_process_start(db, types, type, state, id, status, e, ...)                          \
    cb_process_start_with((db), (types), (type), (state), &(cb_start_options){ __VA_ARGS__ }, \
                          (id), (status), (e))
CB_API bool cb_process_start_with(cb_db *db, const cb_process_types *types, const char *type,
                                  const void *state, const cb_start_options *options, cb_uuid *id,
                                  const char **status, cb_error *e) CB_NODISCARD;

/* Runs a process here that was started leased by this caller (cb_start_batch, .leased_by) until it is done or suspended. *status,
 * unless NULL, is how it went (static storage). False: the lease is over, a worker has it. Not within a transaction. */
CB_API bool cb_process_run_leased(cb_db *db, const cb_process_types *types, const char *process_id,
                                  const char *leased_by, double lease_seconds, const char **status,
                                  cb_error *e);

/* Starts a process for each of n states, an array of the type's struct, as one batch: all of them or none, all
 * left to the workers. Options are those of cb_start_batch (name, reply_to, …); process_type is `type`. */
#define cb_process_start_batch(db, types, type, states, n, id, e, ...) \
    cb_process_start_batch_with((db), (types), (type), (states), (n),  \
                                &(cb_start_batch_options){ __VA_ARGS__ }, (id), (e))
CB_API bool cb_process_start_batch_with(cb_db *db, const cb_process_types *types, const char *type,
                                        const void *states, size_t n,
                                        const cb_start_batch_options *options, cb_uuid *id,
                                        cb_error *e) CB_NODISCARD;

#endif
