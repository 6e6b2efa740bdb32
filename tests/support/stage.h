/* A stage for processes: claims, runs and settles them one at a time on the test's own thread, with a real
 * database; the test plays the handlers, the operators, the clock and the crashes. Everything here fails the
 * test on an error. */
#ifndef TEST_SUPPORT_STAGE_H
#define TEST_SUPPORT_STAGE_H

#include <commandbus/run.h>

#include "claims.h"

typedef struct {
    rig rig;
    cb_process_types *types;
    cb_run *run;
    const char *worker;
    int durable;     /* settles and checkpoints that have become durable */
    int crash_after; /* the worker dies right after this one (counted by durable); 0: never */
    bool crashed;
    int lost_after;     /* likewise it loses its lease, and lives; 0: never */
    cb_run_result last; /* of the last run; strings are of the run, until the next */
} stage;

/* Registers the types; they run with these routes. */
stage stage_open(const cb_process_type *const *types, size_t n, const cb_step_route *routes,
                 size_t n_routes);
void stage_close(stage *s);
/* Other code for the processes that are there: another release. */
void stage_release(stage *s, const cb_process_type *const *types, size_t n,
                   const cb_step_route *routes, size_t n_routes);

/* Deferred. */
cb_uuid stage_start(stage *s, const char *type, const char *state);
/* The same with a deadline in so many seconds of commandbus.now(). */
cb_uuid stage_start_due(stage *s, const char *type, const char *state, double deadline_seconds);

/* Delivers replies, then claims, runs and settles one process. False when none was due, or the worker
 * crashed (s->crashed): then its lease stands until stage_restart. */
bool stage_step(stage *s);
/* Until nothing is due any more, or a crash. Returns the number of runs. */
int stage_go(stage *s);
/* A new worker after a crash: leases of the dead one have run out. */
void stage_restart(stage *s);
/* Moves commandbus.now() forward, for timers. */
void stage_wait(stage *s, double seconds);

/* Claims one command of the domain (it must be there) and settles it; result is JSON or NULL, code the error
 * of anything but a success. Returns its id. */
cb_uuid stage_serve(stage *s, const char *domain, cb_outcome outcome, const char *result,
                    const char *code);
/* Claims one without settling it: its handler runs. */
cb_claim *stage_receive(stage *s, const char *domain);

void stage_respond(stage *s, cb_uuid id, const char *name, const char *payload);

/* "COMPLETED", or "WAITING_FOR_TSQ CODE" when there is an error code. */
#define expect_status(s, expected, id)                                                             \
    expect_value(                                                                                  \
        (s)->rig.sql, expected,                                                                    \
        "SELECT concat_ws(' ', status, error_code) FROM commandbus.process WHERE process_id = $1", \
        (id).text)
/* One field of the state as text. */
#define expect_state(s, expected, id, field)                                                     \
    expect_value((s)->rig.sql, expected,                                                         \
                 "SELECT state ->> $2 FROM commandbus.process WHERE process_id = $1", (id).text, \
                 field)
/* The records in order: "STEP a COMPLETED, WAIT b WAITING". */
#define expect_history(s, expected, id)                                                          \
    expect_value((s)->rig.sql, expected,                                                         \
                 "SELECT string_agg(concat_ws(' ', kind, name, status), ', ' ORDER BY ordinal) " \
                 "FROM commandbus.process_history WHERE process_id = $1",                        \
                 (id).text)
/* Commands ever sent by the process: "fx/BookFx COMPLETED, risk/BookRisk PENDING". */
#define expect_commands(s, expected, id)                                                                       \
    expect_value(                                                                                              \
        (s)->rig.sql, expected,                                                                                \
        "SELECT string_agg(domain || '/' || command_type || ' ' || status, ', ' ORDER BY created_at, msg_id) " \
        "FROM commandbus.command_metadata WHERE correlation_id = $1",                                          \
        (id).text)
/* Events in order. */
#define expect_events(s, expected, id)                                                               \
    expect_value(                                                                                    \
        (s)->rig.sql, expected,                                                                      \
        "SELECT coalesce(string_agg(event, ' ' ORDER BY at, id), '') FROM commandbus.process_event " \
        "WHERE process_id = $1",                                                                     \
        (id).text)

#endif
