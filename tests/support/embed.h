/* A worker inside the test's own process, on a database of the test's own.
 *
 *     TestSuite(claim, .init = embed_open, .fini = embed_close);
 *
 *     cb_worker *w = embed_start(HANDLERS({ "Test", book }), .domain.concurrent_messages = 2);
 *     cb_uuid id = test_send_one(bus.db);
 *     await_value("COMPLETED", "SELECT status FROM commandbus.command_metadata");
 *
 * A server that has just started hands on no lease that expired for one visibility timeout: see
 * fixture.h. */
#ifndef TEST_SUPPORT_EMBED_H
#define TEST_SUPPORT_EMBED_H

#include <commandbus/worker.h>
#include <criterion/criterion.h>
#include <poll.h>

#include "claims.h"
#include "gate.h"

/* Opens the fixture (fixture.h), whose bus the workers serve. */
void embed_open(void);
/* Opens the gate, frees every worker, drops the database. */
void embed_close(void);

/* What makes a worker. Domain fx, two seconds of lease, polls every 100 ms, retries at once and
 * logs everything, unless it is said otherwise. */
typedef struct {
    const cb_handler *handlers; /* copied */
    size_t n_handlers;
    const struct cb_process_type *const *processes; /* of the same set; borrowed */
    size_t n_processes;
    cb_worker_domain_options domain;
    /* Further domains; they bring their own sets. */
    const cb_worker_domain_options *more;
    size_t n_more;
    cb_worker_options worker;
} embed_options;

#define HANDLERS(...)                                \
    .handlers = (const cb_handler[]){ __VA_ARGS__ }, \
    .n_handlers = sizeof((cb_handler[]){ __VA_ARGS__ }) / sizeof(cb_handler)
/* PROCESSES(&payment, &refund) */
#define PROCESSES(...)                                            \
    .processes = (const cb_process_type *const[]){ __VA_ARGS__ }, \
    .n_processes = sizeof((const cb_process_type *const[]){ __VA_ARGS__ }) / sizeof(void *)
/* .domain.retry_backoff = …: BACKOFF(10, 20) */
#define BACKOFF(...)                                         \
    .domain.retry_backoff = (const double[]){ __VA_ARGS__ }, \
    .domain.n_retry_backoff = sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)

/* A worker that embed_close frees; opened only, or started too. */
#define embed_worker(...) embed_worker_with(&(embed_options){ __VA_ARGS__ })
#define embed_start(...)  embed_started(embed_worker_with(&(embed_options){ __VA_ARGS__ }))
cb_worker *embed_worker_with(const embed_options *options);
cb_worker *embed_started(cb_worker *w);
/* Frees it now. */
void embed_free(cb_worker *w);

/* A set of these handlers, which lives until embed_close. */
const cb_module *embed_set(const char *name, const cb_handler *handlers, size_t n);

/* Handlers: one that succeeds at once, and one that passes the gate first. */
cb_handler_fn succeed, wait_at_gate;

/* ---- what the workers told ---- */

/* How many events of that name there were so far. */
size_t embed_told(const char *name);
/* The error code of the last event of that name, "" for none. Static storage. */
const char *embed_told_code(const char *name);

/* Whether its metrics have this text. */
bool embed_shows(cb_worker *w, const char *text);

/* ---- waiting ---- */

#define await(condition)                                                                    \
    do {                                                                                    \
        for (double end_ = test_clock() + patience_seconds; !(condition); poll(NULL, 0, 2)) \
            cr_assert_lt(test_clock(), end_, "waited in vain for %s", #condition);          \
    } while (0)

/* Until the query gives that value. Up to four text parameters may follow the query. */
#define await_value(expected, ...)                                                        \
    do {                                                                                  \
        double end_ = test_clock() + patience_seconds;                                    \
        char *found_ = test_value(bus.conn, __VA_ARGS__, NULL);                           \
        while (strcmp(found_, (expected)) != 0) {                                         \
            cr_assert_lt(test_clock(), end_, "waited in vain for '%s', found '%s' by %s", \
                         (expected), found_, #__VA_ARGS__);                               \
            free(found_);                                                                 \
            poll(NULL, 0, 3);                                                             \
            found_ = test_value(bus.conn, __VA_ARGS__, NULL);                             \
        }                                                                                 \
        free(found_);                                                                     \
    } while (0)

#define await_status(expected, id)                                                                \
    await_value(expected, "SELECT status FROM commandbus.command_metadata WHERE command_id = $1", \
                (id).text)

#endif
