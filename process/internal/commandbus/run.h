/* Running a claimed process: what the worker and the kit for tests do. Not installed. */
#ifndef COMMANDBUS_RUN_H
#define COMMANDBUS_RUN_H

#include <commandbus/process.h>
#include <commandbus/process_item.h>
#include <commandbus/process_request.h>
#include <commandbus/process_row.h>
#include <commandbus/run_result.h>

/* Borrowed. As cb_process_register and cb_process_claim_due want it. */
CB_API const cb_process_kind *cb_process_types_kinds(const cb_process_types *types);

/* How a run asks whoever runs it. Called on the run's thread. */
typedef struct {
    /* Makes a checkpoint durable, as cb_process_settle does, and waits for it; the lease is
     * renewed with it. False: it was not SETTLED or ALREADY, or the worker ends: the run stops,
     * nothing more of it counts. */
    bool (*checkpoint)(void *arg, cb_process_settlement *settlement);
    /* A step begins (it may take timeout_ms) or has ended (name NULL): for timeouts that are
     * watched. NULL: none. */
    void (*stepping)(void *arg, const char *name, int64_t timeout_ms);
    /* A wait, or the command of a command step, came to its end after so long, from when it
     * began or was sent. NULL: nobody counts. */
    void (*waited)(void *arg, bool for_command, const char *name, int64_t ms);
    /* Tests inject failures: true when *out is how this attempt of a step ends, whose function
     * is then not called. NULL: never. */
    bool (*instead)(void *arg, const char *name, cb_settlement *out);
    bool (*is_lost)(void *arg);     /* NULL: never */
    bool (*is_stopping)(void *arg); /* NULL: never */
    /* A checkpoint renews the lease for so long; 0: somebody else does. */
    double lease_seconds;
    /* The lease is kept while a step runs: it need not last for the whole of one, and if this
     * program dies, the process is taken over after lease_seconds. */
    bool renews;
} cb_run_host;

/* One run: of a process from its claim until it suspends or ends. May be used again for the next
 * one by the same thread; a `p` that somebody kept from an earlier run is then recognised and
 * refused. */
typedef struct cb_run cb_run;

CB_API bool cb_run_open(const cb_process_types *types, cb_run **ret, cb_error *e) CB_NODISCARD;
CB_API void cb_run_free(cb_run *run);
DEFINE_OWNED(cb_run, cb_run_free)

/* Runs a claimed process until it suspends or ends. Never fails: what goes wrong is how it ends.
 * The row is borrowed for the call. */
CB_API void cb_run_process(cb_run *run, const cb_process_row *row, const cb_run_host *host,
                           void *arg, cb_run_result *result);

/* What the last run is to be settled by, which from now on is the caller's; the result borrows it
 * as before. NULL: nothing is, or it was taken already. */
CB_API cb_process_item *cb_run_take_item(cb_run *run);

/* About so many bytes of memory a run of this row takes, by the look of its text; 0: it is not
 * worth counting. Whoever runs several at a time keeps the sum of them within what it has. */
CB_API size_t cb_run_memory(const cb_process_row *row);
/* Frees what the last run holds, which else the next one does. Its result ends with it. */
CB_API void cb_run_forget(cb_run *run);

/* Checks what is recorded against this program's code; executes nothing, writes nothing. False
 * (CB_OK in e): it would diverge, and e->message says how. */
CB_API bool cb_run_replay(cb_run *run, const cb_process_row *row, cb_error *e) CB_NODISCARD;

#endif
