/* What a run of a process came to, ready to be settled: its row, its records, its commands and what
 * it has consumed, each written into the item as it is put there. An item borrows nothing, so it
 * outlives its run. Not installed. */
#ifndef COMMANDBUS_PROCESS_ITEM_H
#define COMMANDBUS_PROCESS_ITEM_H

#include <commandbus/host.h>
#include <commandbus/uuid.h>
#include <stddef.h>
#include <stdint.h>

/* The row. Texts may be NULL: nothing there. Durations and moments in milliseconds, 0 for none; a
 * moment counts from 1970. */
typedef struct {
    cb_uuid process_id;
    int64_t lease_no, settle_no; /* the fence */
    bool checkpoint;             /* the run goes on and keeps its lease, … */
    double vt_seconds;           /* … for so long from now on; 0: as it is */
    int version;
    const char *status, *phase; /* NULL: as it is */
    const char *step, *wait;
    bool awaits_reply;
    const char *state; /* JSON; NULL: as it is */
    const char *error_code, *error_message;
    const char *leaving; /* JSON */
    bool deadline_spent;
    int64_t seen; /* the last number of the inbox that the run has read */
    double retry_ms, retry_at_ms;
    double timeout_ms, timeout_at_ms;
    const char *wake;             /* NEVER, TIMERS, NOW */
    const char *cancels, *events; /* JSON arrays */
    /* In place of one that was refused: where the process is and was going to stays, and of what
     * the run consumed only the operator's decision goes. */
    bool refused;
} cb_process_outcome;

/* A record. Of one that is there already, what is NULL, or 0 where that means nothing, stays as it
 * is; but the error and the doubt go with the status. */
typedef struct {
    int ordinal;
    const char *kind, *status, *name;
    int attempts;
    int max_attempts, send_no, during;    /* 0: none */
    const char *command_id, *response_id; /* UUIDs */
    const char *domain, *command_type;    /* where its command went */
    double timeout_ms;                    /* 0: without end; < 0: none, or as it is */
    double took_ms;                       /* < 0: nobody knows */
    const char *error_code, *error_message;
    const char *result, *opening, *patch, *owes; /* JSON */
    bool in_doubt, finished;
} cb_process_record;

/* A command to be sent. */
typedef struct {
    const char *domain, *command_type;
    const char *data; /* JSON; NULL: {} */
    const char *command_id;
    bool without_reply;
    int max_attempts, timeout_seconds; /* 0: none */
} cb_process_command;

/* NULL without memory. Later failures are remembered: see cb_process_item_is_whole. */
CB_API cb_process_item *cb_process_item_new(const cb_process_outcome *row);
CB_API void cb_process_item_free(cb_process_item *item);
DEFINE_OWNED(cb_process_item, cb_process_item_free)

/* One that the process has not got yet; and one that takes the place of the record with its
 * ordinal. `repeats`: it may be another attempt, or have another command, than that one tells
 * of. */
CB_API void cb_process_item_open(cb_process_item *item, const cb_process_record *r);
CB_API void cb_process_item_rewrite(cb_process_item *item, const cb_process_record *r,
                                    bool repeats);
CB_API void cb_process_item_send(cb_process_item *item, const cb_process_command *c);
/* The number in the inbox of what is not needed any more. */
CB_API void cb_process_item_consume(cb_process_item *item, int seq);

/* False: there was not enough memory for all of it. */
CB_API bool cb_process_item_is_whole(const cb_process_item *item);
CB_API size_t cb_process_item_bytes(const cb_process_item *item);

#endif
