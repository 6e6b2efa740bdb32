/* A record of a process's history, and an item of its inbox, in memory. */
#ifndef PROCESS_RECORD_H
#define PROCESS_RECORD_H

#include <commandbus/handler.h>
#include <commandbus/process_item.h>
#include <commandbus/process_row.h>

#include "process_status.h"

typedef enum {
    KIND_STEP,
    KIND_WAIT,
    KIND_SIDE_EFFECT,
    KIND_COMMAND,
    KIND_COMPENSATION,
    KIND_RESPONSE,
    KIND_VERSION,
    KIND_OPERATOR,
    KINDS
} record_kind;

typedef enum {
    RECORD_STARTED,
    RECORD_RETRY,
    RECORD_WAITING,
    RECORD_COMPLETED,
    RECORD_FAILED,
    RECORD_ABANDONED,
    RECORD_CAUGHT, /* it failed, and the code has taken that: see failure.c */
    RECORD_STATUSES
} record_status;

/* What the command of a record says of itself. */
typedef enum {
    COMMAND_NOT_ASKED,
    COMMAND_PENDING,
    COMMAND_IN_PROGRESS,
    COMMAND_COMPLETED,
    COMMAND_FAILED,
    COMMAND_IN_TSQ,
    COMMAND_CANCELED,
    COMMAND_STATUSES /* a word that we do not know */
} command_status;

extern const char *const record_kind_names[KINDS];
extern const char *const record_status_names[RECORD_STATUSES];

/* Its ordinal is its place in the history, from 1. Strings are owned. */
typedef struct {
    int ordinal;
    record_kind kind;
    record_status status;
    char *name;
    int attempts;
    int max_attempts; /* to be told with the next settle, 0: leave it */
    int send_no;
    int during; /* of a RESPONSE: the open record; of a COMPENSATION: what it undoes; 0: none */
    cb_uuid command_id;  /* "" for none */
    cb_uuid response_id; /* likewise */
    char *domain, *command_type;
    int64_t timeout_at; /* moment, 0: none, or not known yet */
    int64_t timeout_ms; /* to be set by the next settle, 0: leave it */
    bool untimed;       /* … or to be taken away by it */
    double took_ms;     /* < 0: none */
    char *error_code, *error_message;
    json_object *result, *opening, *patch;
    json_object *compensation; /* what undoes it: {"inline"} or a command; NULL: nothing does */
    bool in_doubt; /* of a step: an attempt may have succeeded, and none has for certain */
    int64_t since; /* moment from which it has waited, 0: it has not */
    command_status command_status;
    bool dirty; /* not yet settled as it is */
    /* As the database has them, of one that it has. */
    record_status settled_status;
    cb_uuid settled_command;
} record;

typedef enum {
    INBOX_RESPONSE,
    INBOX_REPLY,
    INBOX_OPERATOR,
    INBOX_KINDS
} inbox_kind;

/* How the command of a REPLY has ended. */
typedef enum {
    REPLY_SUCCESS,
    REPLY_FAILED,
    REPLY_CANCELED,
    REPLY_OUTCOMES /* a word that we do not know, or no REPLY */
} reply_outcome;

/* What an OPERATOR asks for. */
typedef enum {
    REQUEST_RETRY,
    REQUEST_CANCEL,
    REQUEST_COMPLETE,
    REQUESTS /* a word that we do not know, or no OPERATOR */
} request_kind;

/* Borrows from the JSON it was read from. */
typedef struct {
    int seq;
    inbox_kind kind;
    const char *name;
    reply_outcome outcome;
    request_kind request;
    const char *response_id; /* or NULL */
    json_object *payload;    /* may be NULL: JSON null */
    bool consumed;
} inbox_item;

void record_done(record *r);
bool record_set_text(char **to, const char *value);
/* So long from the next settle on; 0: without end, also if it had a timeout before. */
void record_set_timeout(record *r, int64_t ms);
/* What was too much must not be written. */
void record_drop_result(record *r);

/* Reads one record; false when it is none that we could have written. */
bool record_read(json_object *from, int ordinal, record *to);
bool inbox_read(json_object *from, inbox_item *to);

/* Puts it into what is settled. is_new: the database has none of this ordinal. *whole turns false
 * when there is no memory for one of its texts. */
void record_put(const record *r, bool is_new, cb_process_item *to, bool *whole);
/* The database has it as it is. */
void record_settled(record *r);

/* True while the record has not got its end. */
bool record_is_open(const record *r);

#endif
