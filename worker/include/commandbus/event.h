/* What a worker tells while it works: events with fields from one fixed vocabulary, which this
 * struct is. Never a payload, never a password. */
#ifndef COMMANDBUS_EVENT_H
#define COMMANDBUS_EVENT_H

#include <commandbus/api.h>
#include <stdint.h>

typedef enum {
    CB_LEVEL_DEBUG,
    CB_LEVEL_INFO,
    CB_LEVEL_WARN,
    CB_LEVEL_ERROR,
} cb_level;

/* What is NULL, empty or 0 is not there. Strings are borrowed for the call. */
typedef struct {
    cb_level level;
    const char *name; /* noun.verb: "command.completed", "worker.started" */
    const char *domain;
    const char *command_id;
    const char *correlation_id;
    const char *command_type;
    const char *process_id;
    const char *process_type;
    const char *step;
    const char *status; /* of a process */
    int64_t lease_no;
    int64_t attempt;
    int64_t max_attempts;
    const char *outcome;
    const char *verdict;
    const char *error_code;
    const char *error; /* one line for people */
    const char *hint;  /* what to do */
    double took_ms;
    double retry_seconds;
    int64_t count;
    int64_t slots;
    int64_t in_flight;
    int64_t signal;
    const char *connection; /* which: claim, settle, process … */
    const char *set;        /* a handler set */
    const char *profile;
    const char *version;
    const char *address;
    const char *file;
} cb_event;

/* Called from any thread of the worker, also from several at once: it must be thread-safe, and
 * quick, for slots wait for it. */
typedef void cb_event_fn(const cb_event *event, void *arg);

/* "debug" and so on. Static storage. */
CB_API const char *cb_level_name(cb_level level);

#endif
