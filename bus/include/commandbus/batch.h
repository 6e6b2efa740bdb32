/* Batches of commands, and of processes. */
#ifndef COMMANDBUS_BATCH_H
#define COMMANDBUS_BATCH_H

#include <commandbus/send.h>

/* What is NULL takes its default in []. */
typedef struct {
    const char *domain;      /* required: the members' domain */
    const char *name;        /* for people [none] */
    const char *custom_data; /* JSON [none] */
    const char *reply_to;    /* where the completion message goes [nowhere] */
    const char *batch_id;    /* [a new one] */
} cb_batch_options;

/* Creates the batch and sends its commands, one transaction. The members' domain and batch_id
 * are the batch's. An empty batch is refused: it could never complete. `ret`, unless NULL, gets
 * the id before anything is sent: after a CB_LOST create it again under that id;
 * INVALID_OPERATION then says that it was there already. */
CB_API bool cb_batch_create(cb_db *db, const cb_batch_options *options, const cb_send *commands,
                            size_t n, cb_uuid *ret, cb_error *e) CB_NODISCARD;

/* What is NULL takes its default in []. */
typedef struct {
    const char *process_type; /* required: a registered one */
    const char *name;         /* for people [none] */
    const char *custom_data;  /* JSON [none] */
    const char *reply_to;     /* where the completion message goes [nowhere] */
    const char *batch_id;     /* [a new one] */
    const char *deadline;     /* of each process: a moment as PostgreSQL reads it [none] */
    /* Of each process, n of them: its id [a new one], and its deadline (NULL: the one above)
     * [that one]. */
    const char *const *process_ids;
    const char *const *deadlines;
    const char *leased_by; /* the caller runs them itself: cb_process_run_leased [workers do] */
    double lease_seconds;  /* with leased_by [30] */
    const size_t *lines;   /* where in a file each state stands: refusals then say "line 7" and
                                 not "state 7" */
    cb_send_progress *progress; /* [none]; false takes everything back: CB_AGAIN */
    void *arg;
} cb_start_batch_options;

enum {
    CB_BATCH_MOST_PROCESSES = 1000000 /* in one cb_start_batch */
};

/* Starts a process for each of n states (JSON objects) as one batch, in one transaction; workers
 * run them. What is in the batch counts as done when it has ended, and as completed only when it
 * has succeeded: COMPENSATED is a failure. `ret` as for cb_batch_create. */
CB_API bool cb_start_batch(cb_db *db, const cb_start_batch_options *options,
                           const char *const *states, size_t n, cb_uuid *ret,
                           cb_error *e) CB_NODISCARD;

/* Closes those of these batches whose members are all done (all open batches when n is 0), each
 * exactly once. To be called after a settle has committed; housekeeping repeats it. *closed may be
 * NULL. */
CB_API bool cb_batch_close(cb_db *db, const cb_uuid *batches, size_t n, size_t *closed,
                           cb_error *e) CB_NODISCARD;

#endif
