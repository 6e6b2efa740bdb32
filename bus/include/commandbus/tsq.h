/* The troubleshooting queue: what an operator does with commands that could not be finished.
 * Each is one guarded update, so that a double click acts once: the second is refused
 * INVALID_OPERATION. */
#ifndef COMMANDBUS_TSQ_H
#define COMMANDBUS_TSQ_H

#include <commandbus/db.h>

typedef struct {
    const char *domain;        /* required */
    const char *command_id;    /* required */
    const char *operator_name; /* required: who decides */
    const char *reason;        /* required to cancel */
    const char *result;        /* JSON, for complete [none] */
} cb_tsq_action;

/* Back to PENDING with a new message, attempts counted anew. */
CB_API bool cb_tsq_retry(cb_db *db, const cb_tsq_action *action, cb_error *e) CB_NODISCARD;
/* CANCELED, with a final reply that gives the reason. */
CB_API bool cb_tsq_cancel(cb_db *db, const cb_tsq_action *action, cb_error *e) CB_NODISCARD;
/* COMPLETED by hand, with a final reply SUCCESS. */
CB_API bool cb_tsq_complete(cb_db *db, const cb_tsq_action *action, cb_error *e) CB_NODISCARD;

#endif
