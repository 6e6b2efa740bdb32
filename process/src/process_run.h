/* A run from inside: what its parts share.
 *
 *     load ─▶ decide ─▶ forward: execute() over the records ─▶ suspended, parked, done … ─▶ settle
 *                  └──▶ leave: a command's outcome, then compensate or end ──────────────▶ settle
 *
 * run.c           a claimed row in memory, and its records
 * decide.c        what a claim may do next: one table of transitions
 * operator.c      operators' decisions
 * replay.c        execute() over the records: what is passed, where the frontier is, what diverges
 * step.c, wait.c, command_step.c, side_effect.c   the calls that execute() makes
 * manager.c       execute() of a type that is a machine of steps: makes the same calls
 * state.c         what changed since the last record
 * size.c          how much of all that a run may hold
 * command.c       commands of records: sending, replies
 * failure.c       what failed and was caught: recorded, and given to the code again
 * leave.c         away from forward: the outcome of a command that is out, then on
 * compensation.c  undoing what has completed, in reverse order
 * outcome.c       how a run ends
 * settlement.c    what the run came to, as one item to be settled
 *
 * A run belongs to one thread. */
#ifndef PROCESS_RUN_H
#define PROCESS_RUN_H

#include <commandbus/host.h>
#include <commandbus/run.h>
#include <pthread.h>
#include <stdatomic.h>

#include "record.h"
#include "types.h"

/* Where the code of the process is just now. */
typedef enum {
    OUTSIDE,    /* no call is in order: p was kept, or is not given yet */
    IN_EXECUTE, /* calls are in order */
    IN_STEP,    /* a function of the process runs: calls are out of order */
} whereabouts;

/* What execute() is run for. */
typedef enum {
    FORWARD, /* to go on */
    /* to learn what is to be undone: passes records, takes a command's final reply, runs no step */
    REBUILD,
    CHECK, /* to compare code and records, nothing else */
} purpose;

/* Why execute() was left before its end. */
typedef enum {
    NOT_LEFT,
    LEFT_WAITING,  /* for a reply or a condition */
    LEFT_RETRYING, /* a step will be tried again */
    LEFT_YIELDING, /* the worker ends: another one goes on */
    LEFT_PARKED,   /* for an operator */
    LEFT_BUSINESS, /* the business said no */
    LEFT_DEADLINE, /* it has passed */
    LEFT_FRONTIER, /* REBUILD and CHECK: nothing more is recorded */
    LEFT_LOST,     /* the lease: nothing more counts */
} departure;

typedef enum {
    WAKE_NEVER,
    WAKE_TIMERS,
    WAKE_NOW
} wake;

/* Borrows the names. */
typedef struct {
    const char **slots;
    size_t room, n;
} name_set;

/* How a record is undone that execute() has passed. */
typedef struct {
    int ordinal;
    cb_step_fn *run; /* NULL: by a command */
    cb_step_options options;
} compensation_call;

typedef struct {
    compensation_call *items;
    size_t n, room;
} compensation_list;

/* Where a process goes that does not go forward any more. JSON in its row. */
typedef struct {
    leaving_way way;
    process_status end;   /* that it takes there */
    char *code, *message; /* why; NULL: nothing to be said */
    bool forced;          /* whoever decided has looked: an unknown outcome does not hold it up */
    bool asked;           /* for the outcome of the command that is out */
    json_object *unreadable; /* what the row has, if that is not one of ours: it stays there */
} leaving;

/* What was claimed, and for whom it is run. */
typedef struct {
    const type_entry *type;
    const cb_process_row *row; /* borrowed for the run; NULL between runs */
    const cb_run_host *host;
    void *host_arg;
    int64_t began_ms; /* our clock */
    parking_code unreadable_code;
    const char *unreadable; /* why its row could not be loaded; NULL: it was */
    /* An operator's; NULL: none. Until the first checkpoint, which moves the inbox. */
    inbox_item *request;
} run_claim;

typedef struct {
    void *now;            /* as execute() sees it */
    void *recorded;       /* as of the last record: what changed since is not recorded yet */
    json_object *unknown; /* fields that this program does not know: they survive */
    bool changed;         /* since the last settle */
} run_state;

/* In bytes of text, at most so many: see size.c. */
typedef struct {
    size_t state;
    size_t content; /* all that the process holds */
} run_size;

typedef struct {
    record *records;
    size_t n, room;
    size_t n_settled; /* so many of them are in the database */
} run_history;

/* What has arrived. */
typedef struct {
    json_object *json; /* that the items borrow from */
    inbox_item *items;
    size_t n;
    bool responses_taken;
} run_inbox;

/* Where an execution of execute() stands; one may follow another within a run. */
typedef struct {
    purpose purpose;
    departure left;
    size_t cursor; /* the next record to be passed */
    name_set called;
    compensation_list compensations; /* that it has registered */
    json_object *failure; /* of the last call, if the code has taken it; NULL: it has not failed */
    cb_caught caught;     /* the same for the code: borrows from it */
} run_replay;

/* Where the code of the process is, and what it did that it must not. Outlives the run, for a p
 * that was kept is told by it. */
typedef struct {
    pthread_t thread;
    _Atomic whereabouts where;
    const char *function;    /* the name, while IN_STEP */
    bool in_hook;            /* that is a hook: it may send */
    bool misused;            /* a call was made in there */
    atomic_bool from_abroad; /* a call was made from another thread */
    char *stray;             /* what somebody did with p outside of execute() */
    bool stray_told;
} run_guard;

/* When the process is to be woken. */
typedef struct {
    wake wake;
    int64_t retry_ms, retry_at;     /* from the settle on, or at a moment; 0: not */
    int64_t timeout_ms, timeout_at; /* likewise */
} run_timers;

/* A command that is sent with the next settlement. */
typedef struct {
    char *domain, *command_type;
    cb_uuid id;
    json_object *data;
    bool without_reply;
    int max_attempts, timeout_seconds; /* 0: none */
} run_command;

typedef struct {
    run_command *items;
    size_t n, room;
} run_commands;

/* What comes of the run: what the next settlement says. */
typedef struct {
    process_status status;
    process_phase phase;
    char *step, *wait;
    char *error_code, *error_message;
    run_timers timers;
    bool deadline_spent;
    run_commands commands;
    json_object *cancels, *events;
    int64_t settle_no;
    /* What the step that begins may take: its checkpoint renews the lease for it. */
    double step_seconds;
    cb_process_item *item; /* the last settlement */
} run_outcome;

/* For metrics. */
typedef struct {
    int steps, replayed, sent;
    const char *sent_to; /* borrowed from a record; NULL: to several domains */
} run_figures;

struct cb_process {
    const cb_process_types *types;
    run_claim claim;
    run_state state;
    run_size size;
    run_history history;
    run_inbox inbox;
    run_replay replay;
    run_guard guard;
    leaving leaving;
    run_outcome outcome;
    run_figures figures;
};

static inline const cb_process_type *run_type(const cb_process *p)
{
    return p->claim.type->type;
}

/* ---- time ---- */
int64_t clock_ms(void);
/* commandbus.now() as the claim had it, and what has passed since. */
int64_t run_now_ms(const cb_process *p);
bool run_is_overdue(const cb_process *p); /* the deadline has passed and has had no effect yet */

bool run_is_lost(const cb_process *p);
bool run_is_stopping(const cb_process *p);

/* ---- run.c ---- */
/* The last whole state, as the row has it. */
bool run_latest_state(cb_process *p, cb_error *e);
/* The first one. */
bool run_first_state(cb_process *p, cb_error *e);
/* A new record at the end. NULL without memory: the process is then parked. Moves the others:
 * pointers to records end with it. */
record *run_append(cb_process *p, record_kind kind, const char *name);
/* The record that waits, is being tried or has failed: the frontier. NULL: none. */
record *run_open_record(cb_process *p);
/* The last one that waits for the reply to its command. NULL: none. */
record *run_waiting_record(cb_process *p);
record *run_at(cb_process *p, int ordinal);

/* ---- decide.c ---- */
/* Does what the claim is about, until there is something to settle. */
void run_decide(cb_process *p);

/* ---- operator.c: claim.request ---- */
bool operator_asks(const inbox_item *request, const char *key);
/* The request as a record. NULL without memory. */
record *operator_record(cb_process *p);
/* False: it does not go on, but is to be settled. */
bool operator_retries(cb_process *p);
bool operator_cancels(cb_process *p);
bool operator_completes(cb_process *p);

/* ---- replay.c ---- */
/* Runs execute() for a purpose, from the initial state. */
void run_execute(cb_process *p, purpose why);

typedef enum {
    PASSED,  /* it is recorded: its patch is applied, go on */
    OPEN,    /* it is recorded, but has no end: *r */
    NEW,     /* nothing is recorded: the frontier */
    REFUSED, /* leave execute() */
} call_entry;
/* False: the call is out of order (and that is told), or execute() is to be left. */
bool call_is_in_order(cb_process *p, const char *name);
/* Every call of execute() begins here. */
call_entry call_enter(cb_process *p, record_kind kind, const char *name, record **r);
/* Opens or re-opens a record at the frontier: what changed before it is its opening. */
record *call_open(cb_process *p, record *r, record_kind kind, const char *name);
/* Gives it its end: what changed since is its patch. False: that cannot be kept, the process is
 * parked and the record has no end. */
bool call_complete(cb_process *p, record *r);
/* Leaves execute(). */
cb_flow call_leave(cb_process *p, departure why);
/* Around every function of the process but execute(): calls of p in there are refused. The second
 * is true when there were some. */
whereabouts function_enter(cb_process *p, const char *name);
bool function_return(cb_process *p, whereabouts was);

/* ---- state.c ---- */
/* What a record changed (NULL: nothing). False: it does not fit; parked. */
bool state_patch(cb_process *p, json_object *patch);
/* From now on this is the state as of the last record. False: parked. */
bool state_keep(cb_process *p);
/* What changed since the last record, which from now on is part of it. NULL: nothing did, or it
 * cannot be kept: then parked. */
json_object *state_take_changes(cb_process *p);
/* Fields set by an operator; false for one that there is not, or that does not take the value:
 * nothing is changed then. */
bool state_override(cb_process *p, json_object *overrides, cb_error *e);
/* What the state was as of the last record. */
void state_restore(cb_process *p);
/* What changed since the last record is part of the state from now on. False: it cannot be kept;
 * parked. */
bool state_accept(cb_process *p);

/* ---- size.c: the limit is the content_limit of its domain, in bytes of text, as the claimed row
 * has it ---- */

/* What a claim reads of each record beside its name and its values: measured_content() counts the
 * same. */
enum {
    RECORD_BYTES = 200
};

/* Whether the row may be read at all; looks at its text only. */
bool size_is_loadable(const cb_process_row *row, cb_error *e);
/* Of an inbox that may not be read: the text of one with nothing but operators' decisions. The
 * caller frees it; NULL without memory. */
char *size_decisions(const char *inbox);

/* Counts from what the row has. */
void size_begin(cb_process *p);
/* A record gets these changes of the state (NULL: none), a value, so many bytes. False: that is too
 * much; then the state is what it was as of the last record, and the process is parked. */
bool size_add_changes(cb_process *p, json_object *changes);
bool size_add_value(cb_process *p, json_object *value);
bool size_add(cb_process *p, size_t bytes);
/* Whether the state as it is now is not too large. */
bool size_state_fits(cb_process *p);

/* ---- wait.c: responses ---- */
/* Takes what has arrived into the state, each response as a record. during: 0, or the open
 * record's. */
void responses_take(cb_process *p, int during);
/* Of a process that is at its end: applied to the state unless that is not to be, told as late. */
void responses_take_late(cb_process *p, bool apply);

/* ---- outcome.c: how a run ends ---- */
void outcome_done(run_outcome *o);
void run_fail_text(cb_process *p, const char *code, const char *fmt, ...) CB_PRINTF(3, 4);
/* Into the troubleshooting queue. */
cb_flow run_park(cb_process *p, parking_code code, const char *fmt, ...) CB_PRINTF(3, 4);
void run_event(cb_process *p, const char *event, const char *name, json_object *details_adopted);
void run_stray(cb_process *p, const char *fmt, ...) CB_PRINTF(2, 3);
/* Suspended: what it waits for, and until when. */
void run_wait_for(cb_process *p, const record *r);
/* What it waited for has come: tells for how long it has, once. */
void run_waited(cb_process *p, record *r);
void run_end(cb_process *p, process_status status);
/* As it was: nothing but what is already noted changes. Returns true. */
bool run_stay(cb_process *p);
/* Calls a hook of the type (NULL: none). One that spoils the state has changed and sent nothing. */
void run_hook(cb_process *p, const char *name, cb_hook_fn *hook);

/* ---- failure.c: what failed, as JSON {"kind", "code", "message", "reply"} ---- */
/* Who may take the failure of a call. */
typedef struct {
    unsigned kinds; /* of cb_failure_kind; of a manager 0 */
    int step;       /* of a manager */
} catcher;

typedef enum {
    LEAVE_IT, /* nobody takes it: what always becomes of it */
    TAKE_IT,
    PARK_IT, /* a manager wants a person to look at it */
} verdict;

/* The caller owns it; NULL without memory. */
json_object *failure_new(cb_failure_kind kind, const char *code, const char *message,
                         json_object *reply);
cb_caught failure_view(json_object *failure);
const char *failure_text(json_object *failure, const char *key);
/* False for codes that say that it is over, and not what became of it. Nobody takes that for a
 * failure. */
bool failure_is_known(const char *code);
/* What a permanent failure of this code is to this process: the type may know it better. */
cb_failure_kind failure_of_permanent(const cb_process *p, const char *code);
/* What is to become of it. Changes nothing. */
verdict failure_ask(cb_process *p, const catcher *by, json_object *failure);
/* Whether any failure of this call might be taken. */
bool failure_may_be_taken(const cb_process *p, const catcher *by);
/* Gives the record its end by a failure that is to be taken; the state must be what it was
 * before the call. */
cb_flow failure_take(cb_process *p, record *r, const catcher *by, json_object *failure);
/* A record that has been passed: its failure, if it is one, is that of the last call. */
cb_flow failure_pass(cb_process *p, const record *r, const catcher *by);
void failure_forget(cb_process *p);

/* ---- step.c ---- */
/* One attempt of a function, for steps and for compensations; the record says how it went. */
typedef enum {
    TRIED_DONE,
    TRIED_AGAIN,     /* RETRY, with a timer */
    TRIED_EXHAUSTED, /* the record has the error; attempts are used up */
    TRIED_TOO_LATE,  /* likewise, but the last one may have succeeded, after its timeout */
    TRIED_FAILED,    /* likewise; permanent */
    TRIED_DECLINED,  /* a business rule */
    TRIED_YIELDED,   /* not begun, or given back */
    TRIED_LOST,
} tried;
tried step_try(cb_process *p, int ordinal, cb_step_fn *run, const cb_step_options *options,
               const char *key_prefix);
/* Before one that gave itself back is asked again: it must not spin. */
extern const int64_t step_pause_ms;
/* True when its last attempt began and nobody knows how it ended, and it may not begin again. */
bool step_is_exhausted_by_crash(const record *r, const cb_step_options *options);

/* ---- command.c ---- */
/* All but the first so many are not sent after all. */
void commands_drop(run_commands *c, size_t kept);
/* Puts a command of this record into what is sent with the next settle. */
bool command_send(cb_process *p, record *r, const char *prefix, json_object *data_adopted,
                  int max_attempts, int timeout_seconds);
/* The reply to this record's command that decides, final before not final. NULL: none yet. *final
 * tells. */
inbox_item *command_reply(cb_process *p, const record *r, bool *final);
/* True while the command is in the troubleshooting queue; not_final: the reply that says so, or
 * NULL. */
bool command_is_in_tsq(const record *r, const inbox_item *not_final);
/* True when the command has its final outcome, whether a reply says so or not. */
bool command_has_ended(const record *r);
/* Asks for the reply of a command that has ended, and gives it new time. */
void command_await_lost(cb_process *p, record *r);
const char *reply_text(const inbox_item *reply, const char *key);
/* Everything that has come for this command is read. */
void command_consume(cb_process *p, const record *r);
/* Asks for a command that nobody has received yet to be canceled, and for its reply if it has an
 * outcome. */
void command_cancel(cb_process *p, const record *r);
/* Asks for a command that is still in the troubleshooting queue with the failure of this reply to
 * be ended, because that failure is taken. */
void command_end_failed(cb_process *p, const record *r, const inbox_item *failure);
/* Borrowed; NULL for JSON null. */
json_object *reply_result(const inbox_item *reply);
/* To the very command that the record sent, and not consumed yet. */
bool reply_is_to(const inbox_item *item, const record *r);
bool reply_is_final(const inbox_item *reply);
bool reply_is_our_cancel(const inbox_item *reply);
/* What command_end_failed asked for was done: the reply says what the failure was. */
bool reply_is_of_failure(const inbox_item *reply);
/* How long the outcome of a command is waited for before a person is asked. */
extern const int64_t outcome_wait_ms;
/* Before a reply that was due is asked for again. */
extern const int64_t lost_reply_ms;

/* ---- command_step.c ---- */
typedef struct command_call command_call;

/* How a driver builds and takes data. What refuses may say why in e. */
typedef struct {
    json_object *(*request)(cb_process *p, const command_call *c, cb_error *e);
    bool (*take)(cb_process *p, const command_call *c, json_object *result, cb_error *e);
    /* What undoes it, now that the result is taken. */
    json_object *(*undo)(cb_process *p, const command_call *c, const record *r, cb_error *e);
} command_form;

struct command_call {
    const char *name;           /* of the record */
    const char *route;          /* of command-steps in the configuration */
    cb_command_options options; /* with what the configuration says, once it is routed */
    const command_form *form;
    int step; /* of a manager */
};
cb_flow command_step(cb_process *p, command_call *c);
/* What the configuration says goes before what the code says. */
void command_route(const cb_process *p, command_call *c);

/* ---- wait.c ---- */
typedef struct wait_call wait_call;

struct wait_call {
    const char *name;
    /* May change the state, but only when it holds; may park the process. */
    bool (*holds)(cb_process *p, const wait_call *c, record *r);
    cb_condition_fn *condition;
    int64_t timeout_ms; /* 0: the type's */
    unsigned caught;    /* kinds of failures */
    int step;           /* of a manager */
};
cb_flow wait_step(cb_process *p, const wait_call *c);

/* ---- manager.c: of types that have one ---- */
cb_flow manager_execute(cb_process *p);
/* Whether a step waits for a response of this name, and it can be read; the record has the error if
 * not. */
bool manager_accepts(cb_process *p, const inbox_item *item, record *r);
/* What the manager makes of a failure of this step; changes nothing. */
verdict manager_judges(cb_process *p, int step, json_object *failure);
/* Takes it into the state, and into the failure where to go from there. False: parked. */
bool manager_takes(cb_process *p, int step, json_object *failure);
/* A compensation has succeeded: its step takes the reply into the state, if it does. */
void manager_take_undone(cb_process *p, json_object *compensation, json_object *result);

/* ---- leave.c ---- */
/* Gives up going forward. Copies code and message. */
void leave_begin(cb_process *p, leaving_way way, process_status end, const char *code,
                 const char *message, bool forced);
/* What its deadline asks for. False: it stays, parked. */
bool leave_for_deadline(cb_process *p);
/* The way out, in this order. False: it goes no further now. */
bool leave_rebuild(cb_process *p);
bool leave_learn_outcome(cb_process *p);
bool leave_finish(cb_process *p); /* LEAVING_TO_END */
/* From the JSON of a row (NULL: it does not leave); false for what is not one of ours. */
bool leaving_read(json_object *from, leaving *to);
/* The caller owns it; NULL: nothing to be stored. */
json_object *leaving_write(const leaving *l);
void leaving_done(leaving *l);
/* The error of a process on its way out is why it leaves. */
void leaving_tell(cb_process *p);

/* ---- compensation.c ---- */
void compensation_register(cb_process *p, const record *r, cb_step_fn *run,
                           const cb_step_options *options);
/* Whether what execute() has registered is what the records have; parks when not. */
bool compensations_agree(cb_process *p);
/* LEAVING_TO_COMPENSATE; false: not all is undone yet. */
bool run_compensate(cb_process *p);

/* ---- settlement.c ---- */
/* The settlement of what is not settled yet. False without memory. */
bool settlement_make(cb_process *p, bool checkpoint, cb_process_settlement *ret);
/* Makes everything so far durable. False: lost. */
bool run_checkpoint(cb_process *p);

#endif
