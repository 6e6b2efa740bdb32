/* What a process can be, as its row and its settlements spell it. Strings exist only where a row is
 * read and a settlement is written. */
#ifndef PROCESS_STATUS_H
#define PROCESS_STATUS_H

#include <stdbool.h>

typedef enum {
    STATUS_PENDING,
    STATUS_EXECUTING,
    STATUS_WAITING_FOR_REPLY,
    STATUS_WAITING_FOR_ASYNC,
    STATUS_WAITING_FOR_RETRY,
    STATUS_WAITING_FOR_TSQ,
    STATUS_COMPENSATING,
    STATUS_COMPENSATED,
    STATUS_COMPLETED,
    STATUS_CANCELED,
    STATUS_FAILED,
    STATUSES
} process_status;

typedef enum {
    PHASE_FORWARD,
    PHASE_COMPENSATING, /* one-way */
    PHASES
} process_phase;

/* Why a process is in the troubleshooting queue. */
typedef enum {
    PARKED_PERMANENT_FAILURE,
    PARKED_PROCESS_TOO_LARGE,
    PARKED_NON_DETERMINISTIC,
    PARKED_RETRIES_EXHAUSTED,
    PARKED_RETRIES_EXHAUSTED_CRASH_RECOVERY,
    PARKED_WAIT_TIMEOUT,
    PARKED_COMMAND_IN_TSQ,
    PARKED_COMMAND_STEP_TIMEOUT,
    PARKED_OUTCOME_UNKNOWN,
    PARKED_COMPENSATION_FAILED,
    PARKED_DEADLINE_EXCEEDED,
    PARKING_CODES
} parking_code;

/* Which way a process leaves that does not go forward any more. */
typedef enum {
    LEAVING_NOT,
    LEAVING_TO_COMPENSATE,
    LEAVING_TO_END, /* with nothing undone */
    WAYS_OF_LEAVING
} leaving_way;

extern const char *const process_status_names[STATUSES];
extern const char *const process_phase_names[PHASES];
extern const char *const parking_code_names[PARKING_CODES];
extern const char *const leaving_way_names[WAYS_OF_LEAVING];

/* The place of a word in a table of names; n for one that is not there, or NULL. */
int name_index(const char *word, const char *const *names, int n);

/* A word that we do not know is EXECUTING. */
process_status process_status_named(const char *word);
/* PARKING_CODES for a code that is not one of ours, such as that of a business failure. */
parking_code parking_code_named(const char *word);

/* COMPLETED, COMPENSATED, CANCELED or FAILED. */
bool process_status_is_end(process_status status);

#endif
