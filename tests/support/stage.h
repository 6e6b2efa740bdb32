/* A stage for processes: the kit that is installed (commandbus/test.h), and an observer.
 * Everything here fails the test on an error; what it means is said there. */
#ifndef TEST_SUPPORT_STAGE_H
#define TEST_SUPPORT_STAGE_H

#include <commandbus/run.h>
#include <commandbus/test.h>

#include "claims.h"

typedef struct {
    cb_test kit; /* on bus.db */
} stage;

/* Registers the types; they run with these routes. */
stage stage_open(const cb_process_type *const *types, size_t n, const cb_step_route *routes,
                 size_t n_routes);
void stage_close(stage *s);
/* Other code for the processes that are there: another release. */
void stage_release(stage *s, const cb_process_type *const *types, size_t n,
                   const cb_step_route *routes, size_t n_routes);

/* An execute() that is done at once. */
cb_flow stage_nothing(cb_process *p, void *state);

cb_uuid stage_start(stage *s, const char *type, const char *state);
cb_uuid stage_start_due(stage *s, const char *type, const char *state, double deadline_seconds);

/* False when none was due, or the worker crashed (s->kit.crashed). */
bool stage_step(stage *s);
/* Returns the number of runs. */
int stage_go(stage *s);
void stage_restart(stage *s);
void stage_wait(stage *s, double seconds);

/* Waits, then goes on. */
void stage_pass(stage *s, double seconds);

/* Whether a process has ended, and whether a command of this domain waits to be served. */
bool stage_is_over(cb_uuid id);
bool stage_is_queued(const char *domain);

/* code: the error of anything but a success. Returns the command's id. */
cb_uuid stage_serve(stage *s, const char *domain, cb_outcome outcome, const char *result,
                    const char *code);
/* The caller frees it. */
cb_claim *stage_receive(stage *s, const char *domain);

/* A reply as the test writes it: ids, and the members of the object `rest`. */
void stage_reply(cb_uuid process, cb_uuid command, const char *rest);
/* An operator calls commandbus.tsq_retry, tsq_cancel or tsq_complete for a command. */
void stage_tsq(const char *call, const char *domain, cb_uuid command);

void stage_respond(stage *s, cb_uuid id, const char *name, const char *payload);

/* A call of the kit. */
#define stage_expect(call, ...)                              \
    do {                                                     \
        cb_error e_ = { 0 };                                 \
        cr_expect(call(__VA_ARGS__, &e_), "%s", e_.message); \
    } while (0)

#define expect_status(s, expected, id) \
    stage_expect(cb_test_expect_status, &(s)->kit, (id).text, (expected))
#define expect_state(s, expected, id, field) \
    stage_expect(cb_test_expect_state, &(s)->kit, (id).text, (field), (expected))
#define expect_history(s, expected, id) \
    stage_expect(cb_test_expect_history, &(s)->kit, (id).text, (expected))
#define expect_commands(s, expected, id) \
    stage_expect(cb_test_expect_commands, &(s)->kit, (id).text, (expected))
#define expect_events(s, expected, id) \
    stage_expect(cb_test_expect_events, &(s)->kit, (id).text, (expected))

#endif
