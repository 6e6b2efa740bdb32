/* Process rows: claiming them, settling what a run came to, keeping their leases, bringing them
 * replies. What a run is, process/ knows (commandbus/process.h); here it is rows and JSON. Not
 * installed. */
#ifndef COMMANDBUS_PROCESS_ROW_H
#define COMMANDBUS_PROCESS_ROW_H

#include <commandbus/db.h>
#include <commandbus/settle.h>
#include <commandbus/uuid.h>
#include <stddef.h>
#include <stdint.h>

/* A type that the caller can run, with the version of its code. */
typedef struct {
    const char *process_type;
    const char *domain;
    int version;
    bool step_based;         /* execution model STEP_BASED, else PROCESS_STEP */
    const char *reply_queue; /* NULL: <domain>__replies */
    /* Fields whose values the views hide; ends with NULL. NULL: none. */
    const char *const *redact;
    /* The responses that it takes: {"<name>": {"fields": {"<field>": "<kind>"}, "needs": […]}},
     * as commandbus.check_response reads it. Others are refused. NULL: nobody knows, any is
     * kept. */
    const char *responses;
} cb_process_kind;

/* Registers the types (and their reply queues). Refuses one that another domain has, or whose
 * responses of this version hold something else (CB_INVALID_OPERATION). */
CB_API bool cb_process_register(cb_db *db, const cb_process_kind *kinds, size_t n,
                                cb_error *e) CB_NODISCARD;

/* A claimed process. Every pointer is borrowed from its claim; NULL where there is no value.
 * Moments are milliseconds since 1970 on the clock commandbus.now(), 0 for none. */
typedef struct {
    cb_uuid process_id;
    const char *domain;
    const char *process_type;
    const char *reply_queue;
    const char *status; /* before the claim */
    const char *phase;
    const char *error_code, *error_message;
    const char *current_step, *current_wait;
    int version; /* the highest that wrote it, 0 for none */
    int64_t lease_no;
    int64_t settle_no;
    int unsettled; /* claims without an outcome before this one */
    int64_t inbox_seq;
    int64_t now_ms; /* of the claim */
    int64_t created_ms, deadline_ms, retry_ms, wait_timeout_ms;
    bool deadline_spent;
    const char *leaving;       /* JSON object or NULL */
    const char *initial_state; /* JSON object */
    const char *state;         /* JSON object */
    const char *history; /* JSON array of records by ordinal, each an array: see cb_record_column */
    const char *inbox;   /* JSON array by seq, each an array: see cb_inbox_column */
    int64_t waited_us;   /* from due to claimed */
    /* In bytes of text: what a process may hold (domain.content_limit), and 0 or what this one
     * holds, more than that. Then its content is not here: the states are {}, the history is
     * NULL, and the inbox has nothing but operators' decisions. */
    int64_t content_limit, too_large;
} cb_process_row;

/* The columns of a record in `history`. */
typedef enum {
    CB_RECORD_ORDINAL,
    CB_RECORD_KIND,
    CB_RECORD_STATUS,
    CB_RECORD_NAME,
    CB_RECORD_ATTEMPTS,
    CB_RECORD_SEND_NO,
    CB_RECORD_DURING,
    CB_RECORD_COMMAND_ID,
    CB_RECORD_DOMAIN,
    CB_RECORD_COMMAND_TYPE,
    CB_RECORD_TIMEOUT_MS, /* moment */
    CB_RECORD_ERROR_CODE,
    CB_RECORD_ERROR_MESSAGE,
    CB_RECORD_RESULT,
    CB_RECORD_OPENING,
    CB_RECORD_PATCH,
    CB_RECORD_OWES,
    CB_RECORD_COMMAND_STATUS, /* of a WAITING record: the command's own status now, else null */
    CB_RECORD_SINCE_MS,       /* moment from which a WAITING record has waited, else 0 */
    CB_RECORD_IN_DOUBT, /* of a step: an attempt may have succeeded, and none has for certain */
    CB_RECORD_COLUMNS,
} cb_record_column;

/* The columns of an item in `inbox`. */
typedef enum {
    CB_INBOX_SEQ,
    CB_INBOX_KIND,
    CB_INBOX_NAME,
    CB_INBOX_RESPONSE_ID,
    CB_INBOX_PAYLOAD,
    CB_INBOX_COLUMNS,
} cb_inbox_column;

typedef struct cb_process_claim cb_process_claim;

typedef struct {
    const char *worker;           /* required: who holds the lease */
    const cb_process_kind *kinds; /* what it can run, all of one domain */
    size_t n_kinds;
    double vt_seconds; /* [30] */
    /* Takes no more than hold so many bytes of text together, but at least one [8 MiB]. */
    int64_t claim_bytes;

    /* Reply queues to empty first, in the same transaction: what they bring is claimed at once. */
    const char *const *reply_queues;
    size_t n_reply_queues;
    double reply_grace_seconds; /* [60] */
    int most_replies;           /* of each queue [100] */
    bool leave_replies;         /* this look delivers none */
    bool leave_timer;           /* and does not ask for the next timer: next_seconds is < 0 */
} cb_process_claim_options;

/* What one look brought beside the processes. */
typedef struct {
    int64_t delivered, late, dead_lettered; /* replies */
    bool more_replies;                      /* a queue gave as many as it was asked for */
    bool more_processes;                    /* some are due that were left because of claim_bytes */
    double next_seconds;                    /* until the next timer of these types; < 0: none */
} cb_process_look;

/* Delivers replies, then takes up to `quantity` due processes (0: only delivers), then looks
 * when the next timer is due: one flush, one transaction. The caller owns *ret. */
CB_API bool cb_process_claim_due(cb_db *db, const cb_process_claim_options *options, int quantity,
                                 cb_process_claim **ret, cb_process_look *look,
                                 cb_error *e) CB_NODISCARD;
/* Delivers the replies in queues that these types had before their configuration changed: nobody
 * else looks there. Now and then is often enough. */
CB_API bool cb_process_deliver_former(cb_db *db, const cb_process_claim_options *options,
                                      int64_t *delivered, cb_error *e) CB_NODISCARD;
CB_API size_t cb_process_claim_count(const cb_process_claim *claim);
/* Borrowed from the claim. */
CB_API const cb_process_row *cb_process_claim_at(const cb_process_claim *claim, size_t i);
/* Of the text that it holds. */
CB_API size_t cb_process_claim_bytes(const cb_process_claim *claim);
CB_API void cb_process_claim_free(cb_process_claim *claim);
DEFINE_OWNED(cb_process_claim, cb_process_claim_free)

/* One process as it is, unclaimed, for reading only: `replay`. lease_no is what the row has. */
CB_API bool cb_process_read(cb_db *db, const char *process_id, cb_process_claim **ret,
                            cb_error *e) CB_NODISCARD;
/* Ids of processes that have not ended, of one type or (NULL) all, after `after` (NULL: from the
 * start), in order. *n at most `room`. */
CB_API bool cb_process_running(cb_db *db, const char *process_type, const char *after, cb_uuid *ids,
                               size_t room, size_t *n, cb_error *e) CB_NODISCARD;

/* Writes n of them in one transaction, and answers per item; see cb_settle, also for the batches
 * of those that ended. An error of class CB_DATA or a refusal concerns some item. */
CB_API bool cb_process_settle(cb_db *db, const char *worker, cb_process_settlement *items, size_t n,
                              cb_error *e) CB_NODISCARD;
/* The same, but an item that the database does not take never spoils its batch: it is found by
 * halving, and its process is parked in the TSQ as PERMANENT_FAILURE, saying why. *refused,
 * unless NULL, counts those. */
CB_API bool cb_process_settle_each(cb_db *db, const char *worker, cb_process_settlement *items,
                                   size_t n, size_t *refused, cb_error *e) CB_NODISCARD;

typedef struct {
    cb_uuid process_id;
    int64_t lease_no;
    bool held; /* out */
} cb_process_lease;

/* Moves the end of each lease that the caller still holds. A row that is locked counts as held. */
CB_API bool cb_process_extend(cb_db *db, const char *worker, cb_process_lease *leases, size_t n,
                              double vt_seconds, cb_error *e) CB_NODISCARD;
/* Frees what the database says `worker` holds of these types and it does not know of. */
CB_API bool cb_process_release_unknown(cb_db *db, const char *worker, const cb_process_kind *kinds,
                                       size_t n_kinds, const cb_process_lease *held, size_t n,
                                       size_t *released, cb_error *e) CB_NODISCARD;

#endif
