/* A kit to test process types with: claims, runs and settles them one at a time on the test's
 * own thread, against a real database; the test plays the handlers, the operators, the clock and
 * the crashes.
 *
 *     static bool pays_when_approved(cb_test *t, cb_error *e)
 *     {
 *         cb_uuid id;
 *
 *         return cb_test_start(t, "Transfer", "{\"account\": \"DE1\", …}", &id, e) &&
 *                cb_test_go(t, NULL, e) &&                               // until it waits
 *                cb_test_serve(t, "fx", &(cb_test_answer){ .result = "{\"quote\": \"Q\"}" }, NULL, e) &&
 *                cb_test_go(t, NULL, e) &&
 *                cb_test_respond(t, id.text, "approval", "{\"approved\": true}", e) &&
 *                cb_test_go(t, NULL, e) &&
 *                cb_test_expect_status(t, id.text, "COMPLETED", e);
 *     }
 *
 *     cb_test t;
 *     if (!cb_test_open(&t, &e, .types = types, .n_types = 1, .domains = domains) ||
 *         !pays_when_approved(&t, &e))
 *         fprintf(stderr, "%s\n", e.message);
 *     cb_test_close(&t);
 *
 * Every call that can fail returns false and says why in e; it never ends the program, so that
 * it fits under any test framework. Link it to tests only: CMake commandbus::test, pkg-config
 * commandbus-test.
 *
 * Not played: other workers, leases that run out by themselves, and timeouts of steps that hang.
 * For those run a worker (tests/fleet does).
 *
 * Thread-safety: a cb_test and what it gives belong to one thread. */
#ifndef COMMANDBUS_TEST_H
#define COMMANDBUS_TEST_H

#include <commandbus/client.h>
#include <commandbus/process.h>
#include <commandbus/run_result.h>

struct cb_run;
struct cb_claim;

/* What is left out takes its default in []. All is borrowed, until the next release or the
 * close. */
typedef struct {
    /* What is tested [none: a release brings it, when tables that it needs are there]. */
    const cb_process_type *const *types;
    size_t n_types;
    const cb_step_route *routes; /* command-steps.<name> of the configuration [none] */
    size_t n_routes;
    const cb_type_setting *settings; /* processes.<Type> of the configuration [none] */
    size_t n_settings;
    /* Domains that commands go to, beside those of the types; ends with NULL [none]. A command to
     * any other parks its process, as it does everywhere. */
    const char *const *domains;
    /* A server on which this login may create databases [the environment's COMMANDBUS_TEST_URL]. */
    const char *server_url;
    /* A connection to a database that has the bus: it is used, and it stays [a database of its
     * own on the server, migrated, and dropped at the close]. */
    cb_db *db;
} cb_test_options;

/* How a handler answers, or a step ends. */
typedef struct {
    cb_outcome outcome;     /* [CB_SUCCESS] */
    const char *result;     /* JSON of a handler's success [none] */
    const char *error_code; /* of anything else */
    const char *error_message;
    const char
        *command_type; /* of a handler: what the command must be; else it is an error [any] */
} cb_test_answer;

/* A test that runs. */
typedef struct {
    /* ---- to set ---- */
    int crash_after; /* the worker dies right after so many are durable; 0: never */
    int lost_after;  /* likewise its lease is taken from it, and it lives; 0: never */

    /* ---- to look at, and `durable` to set back to 0 ---- */
    int durable;  /* settles and checkpoints that the database has */
    bool crashed; /* nothing runs before cb_test_restart */
    /* Of the last run; strings are of the run, until the next one. */
    cb_run_result last;
    cb_db *db;               /* borrowed: for cb_process_retry, cb_process_cancel, cb_db_ask … */
    cb_process_types *types; /* borrowed: for cb_process_start */
    const char *worker;      /* the name under which processes are claimed */

    /* ---- the kit's own ---- */
    struct cb_run *run;
    cb_db *server;     /* NULL: the database is the caller's */
    char database[64]; /* its name; empty: there is none to drop */
    const char **reply_queues;
    size_t n_reply_queues;
    char *queue_names;
    struct cb_test_behaviour *behaviours; /* of steps */
    size_t n_behaviours;
    cb_error *failing; /* of the call that runs: where a checkpoint says why it failed */
} cb_test;

/* cb_test_open(t, e, options…): makes a database and registers the types. That takes a second or
 * two; several tests can share one, each with processes of its own. After a failure too, t can
 * (and, to drop what was made, should) be closed. */
#define cb_test_open(t, e, ...) cb_test_open_with((t), &(cb_test_options){ __VA_ARGS__ }, (e))
bool cb_test_open_with(cb_test *t, const cb_test_options *options, cb_error *e) CB_NODISCARD;
/* Drops the database unless it is the caller's. Fine for one that is all zeros. */
void cb_test_close(cb_test *t);
/* cb_test_release(t, e, options…): another release of the code runs the processes that are
 * there. Options that name a server or a database have no effect. */
#define cb_test_release(t, e, ...) cb_test_release_with((t), &(cb_test_options){ __VA_ARGS__ }, (e))
bool cb_test_release_with(cb_test *t, const cb_test_options *options, cb_error *e) CB_NODISCARD;

/* ---- processes ---- */

/* Starts one; it does nothing before cb_test_step or cb_test_go. The state is a JSON object. */
bool cb_test_start(cb_test *t, const char *type, const char *state, cb_uuid *id,
                   cb_error *e) CB_NODISCARD;
/* The same with a deadline in so many seconds of the test's clock, which may have passed. */
bool cb_test_start_due(cb_test *t, const char *type, const char *state, double deadline_seconds,
                       cb_uuid *id, cb_error *e) CB_NODISCARD;
/* Delivers replies, then claims, runs and settles one process that is due. *ran (unless NULL) is
 * false when none was, or the worker crashed or lost its lease on the way. */
bool cb_test_step(cb_test *t, bool *ran, cb_error *e) CB_NODISCARD;
/* Until nothing is due, or a crash. *runs (unless NULL): how many. Fails when it never comes to
 * rest. */
bool cb_test_go(cb_test *t, int *runs, cb_error *e) CB_NODISCARD;

/* ---- crashes and the clock ----
 *
 *     for (int at = 1; ; at++) {
 *         t.durable = 0, t.crash_after = at;
 *         … start a process, and play it to its end with cb_test_restart after each crash …
 *         if (!crashed_on_the_way)
 *             break;                 // every point at which it can die has been tried
 *     }
 */

/* A new worker after a crash: leases of the dead one have run out. */
bool cb_test_restart(cb_test *t, cb_error *e) CB_NODISCARD;
/* Moves the clock of process timers forward: waits and deadlines pass, retries come due. */
bool cb_test_wait(cb_test *t, double seconds, cb_error *e) CB_NODISCARD;

/* ---- the others ---- */

/* Claims the next command of the domain, which must be there, and answers it. Its id goes to *id
 * unless that is NULL. */
bool cb_test_serve(cb_test *t, const char *domain, const cb_test_answer *answer, cb_uuid *id,
                   cb_error *e) CB_NODISCARD;
/* Claims it without an answer: its handler runs. *ret is for cb_test_claim_free. */
bool cb_test_receive(cb_test *t, const char *domain, struct cb_claim **ret,
                     cb_error *e) CB_NODISCARD;
/* The command, borrowed from the claim. */
const cb_command *cb_test_claim_command(const struct cb_claim *claim);
void cb_test_claim_free(struct cb_claim *claim); /* NULL is fine */
/* The next `times` attempts of this step end as the answer says, and its function is not called:
 * a failure of the world outside, or with CB_SUCCESS a success that does nothing. Borrows the
 * texts. Said again for the same step, it counts instead of what was said before. */
bool cb_test_inject(cb_test *t, const char *step, int times, const cb_test_answer *answer,
                    cb_error *e) CB_NODISCARD;
/* An answer from outside, to a wait. Decisions of operators are cb_process_retry(t->db, …),
 * cb_process_cancel, cb_process_complete and cb_tsq_retry … */
bool cb_test_respond(cb_test *t, const char *process_id, const char *name, const char *payload,
                     cb_error *e) CB_NODISCARD;

/* ---- what is to be seen: CB_INVALID_DATA says what was expected and what was found ---- */

/* "COMPLETED", or "WAITING_FOR_TSQ CODE" when there is an error code. */
bool cb_test_expect_status(cb_test *t, const char *process_id, const char *expected,
                           cb_error *e) CB_NODISCARD;
/* A field of the state as text ("" for null or none); in a nested struct or a list by its path,
 * as in "lines.0.article". */
bool cb_test_expect_state(cb_test *t, const char *process_id, const char *field,
                          const char *expected, cb_error *e) CB_NODISCARD;
/* The records in order: "STEP check COMPLETED, WAIT awaitApproval WAITING". */
bool cb_test_expect_history(cb_test *t, const char *process_id, const char *expected,
                            cb_error *e) CB_NODISCARD;
/* All commands that it has sent: "fx/BookFx COMPLETED, risk/BookRisk PENDING". */
bool cb_test_expect_commands(cb_test *t, const char *process_id, const char *expected,
                             cb_error *e) CB_NODISCARD;
/* What happened, for people, in order. */
bool cb_test_expect_events(cb_test *t, const char *process_id, const char *expected,
                           cb_error *e) CB_NODISCARD;

#endif
