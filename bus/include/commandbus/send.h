/* Sending commands. */
#ifndef COMMANDBUS_SEND_H
#define COMMANDBUS_SEND_H

#include <commandbus/db.h>
#include <commandbus/uuid.h>
#include <stddef.h>

/* What to send. Strings are borrowed for the call; what is NULL or 0 takes its default. */
typedef struct {
    const char *domain;         /* required */
    const char *command_type;   /* required */
    const char *data;           /* a JSON object [{}] */
    const char *command_id;     /* the idempotency key, not of version 8 [a new one] */
    const char *correlation_id; /* [a new one] */
    const char *reply_to;       /* a registered reply queue, not of processes [no reply] */
    const char *batch_id;       /* an open batch [none] */
    const char *headers;        /* a JSON object [none] */
    int max_attempts;           /* [the worker's setting for the domain] */
    int timeout_seconds;        /* one run of the handler [the worker's setting] */
    double delay_seconds;       /* visible this much later [0] */
} cb_send;

/* What can be known to be wrong without asking the database: required fields, JSON, UUIDs. */
CB_API bool cb_send_check(const cb_send *command, cb_error *e) CB_NODISCARD;

/* One command, one transaction (the caller's if one is open). `ret`, unless NULL, gets the id
 * before anything is sent: after a CB_LOST send again under it, DUPLICATE_COMMAND then means it
 * was sent. */
CB_API bool cb_send_command(cb_db *db, const cb_send *command, cb_uuid *ret,
                            cb_error *e) CB_NODISCARD;

/* Called after each chunk; false stops before the next one, which is no error: *sent tells. */
typedef bool cb_send_progress(size_t sent, size_t total, void *arg);

typedef struct {
    size_t chunk; /* Commands in one transaction [1000]. */
    cb_send_progress *progress;
    void *arg;
} cb_send_many_options;

/* Checks all of them first (duplicates over the whole request too), then sends chunk by chunk, each
 * all or nothing; inside the caller's transaction all of them are. A chunk also ends at 4 MiB.
 * `ret`, unless NULL, is an array of n ids, filled before the first chunk is sent: after a CB_LOST
 * send the rest again under them, DUPLICATE_COMMAND then means that the lost chunk was sent. *sent
 * tells how many are known to be durable, also on failure; it may be NULL. */
CB_API bool cb_send_many(cb_db *db, const cb_send *commands, size_t n,
                         const cb_send_many_options *options, cb_uuid *ret, size_t *sent,
                         cb_error *e) CB_NODISCARD;

#endif
