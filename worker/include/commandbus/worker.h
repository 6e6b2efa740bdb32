/* A worker inside a program of yours; commandbus-worker is one. Claims commands and processes of
 * some domains, runs them in slots, settles what they come to.
 *
 * Thread-safety: every function may be called from any thread at any time between open and free,
 * except that free must be the last one. Not from inside a handler. */
#ifndef COMMANDBUS_WORKER_H
#define COMMANDBUS_WORKER_H

#include <commandbus/event.h>
#include <commandbus/handler.h>
#include <commandbus/owned.h>
#include <commandbus/process.h>
#include <commandbus/set.h>
#include <commandbus/version.h>

/* One domain to serve. What is 0 takes its default in []. */
typedef struct {
    const char *domain;           /* required */
    const cb_module *const *sets; /* whose handlers serve it, and whose processes run in it */
    size_t n_sets;
    int concurrent_messages;  /* slots [5] */
    int concurrent_processes; /* slots for processes, if a set has some [= concurrent_messages] */
    int prefetch;             /* commands claimed beyond the free slots [0] */
    const int *fleet_limit;   /* leases over the whole fleet, 0 none [NULL: left as it is] */
    double visibility_timeout_seconds; /* the lease [30] */
    double poll_interval_seconds;      /* [1] */
    bool no_notify;                    /* poll only */
    int handler_timeout_seconds;       /* for commands that bring none [30, at most the lease] */
    int max_attempts;                  /* for commands that bring none [3] */
    /* Seconds after attempt 1, 2, …; the last repeats. NULL: 10, 60, 300; n_retry_backoff is
     * then not looked at. One without entries: 30 each. */
    const double *retry_backoff;
    size_t n_retry_backoff;
} cb_worker_domain_options;

typedef struct {
    const char *url;        /* required */
    const char *listen_url; /* where LISTEN works [url] */
    bool no_prepared;       /* prepare no statements: cb_db_set_prepared */
    const char *name;       /* the instance's, for people [host-pid] */
    const char *profile;    /* shown by `commandbus fleet` [none] */
    const cb_worker_domain_options *domains;
    size_t n_domains;
    const char *const
        *sends_to; /* domains that are not served but sent to: registered too [none] */
    size_t n_sends_to;

    /* What it does not do for its domains. */
    bool no_commands;  /* claims none */
    bool no_processes; /* runs none */
    bool no_replies;   /* brings no replies from <domain>__replies to their processes */
    /* Where the commands of steps go, and settings of process types. Borrowed: they must outlive
     * the worker. */
    const cb_step_route *routes;
    size_t n_routes;
    const cb_type_setting *settings;
    size_t n_settings;
    double reply_grace_seconds; /* how long a reply waits for its process to be known [60] */

    double kill_grace_seconds; /* a handler this long over its timeout ends the worker [30] */
    double unknown_type_grace_seconds; /* [600] */
    size_t result_limit;               /* bytes of a result [1 MiB] */
    size_t stack_bytes;                /* of a slot's thread [256 KiB] */
    /* Retention as PostgreSQL intervals; NULL keeps that kind for ever. */
    const char *keep_commands, *keep_audit, *keep_archives, *keep_processes;
    cb_event_fn *on_event; /* [none] */
    void *on_event_arg;
    cb_level event_level; /* the least that is told [DEBUG] */
} cb_worker_options;

typedef struct cb_worker cb_worker;

/* Copies the options (handler sets are borrowed and must outlive the worker), checks them, and
 * refuses a command type or process type that two sets of one domain offer, and a process type
 * of another domain. Connects nowhere. */
CB_API bool cb_worker_open(const cb_worker_options *options, cb_worker **ret,
                           cb_error *e) CB_NODISCARD;

/* Connects, checks the schema, registers the domains and process types, starts every thread,
 * then claims. When it fails nothing was claimed and nothing runs: CB_LOST or CB_DENIED no
 * database, CB_SCHEMA… what `migrate` mends, CB_MEMORY more slots than this machine can give.
 * Started already: an event worker.already_started, no effect, true. */
CB_API bool cb_worker_start(cb_worker *w, cb_error *e) CB_NODISCARD;

/* Asks for no more, gives back what has not begun, waits for the rest. What a claim that was
 * already on its way brings is given back too, uncharged and without its handler being entered.
 * True when everything was settled within timeout_seconds. False: some handler still runs or an
 * outcome could not be written; both go on, and the call may be repeated. A handler that has
 * overrun its kill_grace too is not waited for. Not started: true. */
CB_API bool cb_worker_stop(cb_worker *w, double timeout_seconds);
/* The same without waiting for handlers: what runs is redelivered when its lease ends. */
CB_API void cb_worker_stop_now(cb_worker *w);

CB_API bool cb_worker_is_running(const cb_worker *w);
/* Commands and processes claimed and not yet settled, or whose handler or step has not returned;
 * of all domains for NULL. */
CB_API size_t cb_worker_in_flight(const cb_worker *w, const char *domain);
/* The i-th domain served, NULL past the last. Borrowed. */
CB_API const char *cb_worker_domain(const cb_worker *w, size_t i);
/* The name that leases, audit and `commandbus fleet` show: unique for each open. Borrowed. */
CB_API const char *cb_worker_id(const cb_worker *w);

/* False with a reason when it should get no traffic: starting, stopping, database away, or a
 * handler that does not return. */
CB_API bool cb_worker_is_ready(const cb_worker *w, char *reason, size_t size);
/* True once a handler has overrun its timeout by more than kill_grace: the program should stop the
 * worker and exit, for a thread cannot be killed. */
CB_API bool cb_worker_is_broken(const cb_worker *w);

/* All metrics in Prometheus' text format. The caller frees *ret. */
CB_API bool cb_worker_metrics(cb_worker *w, char **ret, cb_error *e) CB_NODISCARD;

/* Stops now if it runs, then waits for handlers that still do: their memory cannot go before. */
CB_API void cb_worker_free(cb_worker *w);
DEFINE_OWNED(cb_worker, cb_worker_free)

#endif
