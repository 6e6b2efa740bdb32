/* Asking something of a process from outside: start it, answer it, decide about it. Each call is
 * a durable request in the database; a worker that has the type acts on it. */
#ifndef COMMANDBUS_PROCESS_REQUEST_H
#define COMMANDBUS_PROCESS_REQUEST_H

#include <commandbus/db.h>
#include <commandbus/uuid.h>

/* What is NULL takes its default. */
typedef struct {
    const char *process_id; /* [a new one]; the same id again: CB_INVALID_OPERATION */
    const char *deadline;   /* a moment as PostgreSQL reads it, e.g. ISO 8601 [none] */
    const char *batch_id;   /* [none] */
    const char *leased_by;  /* start it leased by this worker, who will run it [deferred] */
    double lease_seconds;   /* with leased_by [30] */
} cb_process_request_options;

/* Starts a process of a registered type with a state (JSON object). Many at once:
 * cb_start_batch, batch.h. */
CB_API bool cb_process_request_start(cb_db *db, const char *process_type, const char *state,
                                     const cb_process_request_options *options, cb_uuid *ret,
                                     cb_error *e) CB_NODISCARD;

/* Brings an asynchronous response (payload: JSON value, NULL for {}). *accepted is false when
 * this response_id (NULL: none) was there already. CB_INVALID_OPERATION: the login has no right
 * to it (responder.h). */
CB_API bool cb_process_respond(cb_db *db, const char *process_id, const char *name,
                               const char *payload, const char *response_id, bool *accepted,
                               cb_error *e) CB_NODISCARD;

/* Decisions about a process in the TSQ. reason may be NULL except for a cancel. */
CB_API bool cb_process_retry(cb_db *db, const char *process_id, const char *operator_name,
                             const char *reason, const char *new_deadline,
                             cb_error *e) CB_NODISCARD;
CB_API bool cb_process_cancel(cb_db *db, const char *process_id, const char *operator_name,
                              const char *reason, bool run_compensations, cb_error *e) CB_NODISCARD;
/* overrides: JSON object of state fields, or NULL. */
CB_API bool cb_process_complete(cb_db *db, const char *process_id, const char *operator_name,
                                const char *reason, const char *overrides,
                                cb_error *e) CB_NODISCARD;

#endif
