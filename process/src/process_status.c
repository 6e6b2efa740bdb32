/* The names of what a process can be. */
#include "process_status.h"

#include <string.h>

const char *const process_status_names[STATUSES] = {
    [STATUS_PENDING] = "PENDING",
    [STATUS_EXECUTING] = "EXECUTING",
    [STATUS_WAITING_FOR_REPLY] = "WAITING_FOR_REPLY",
    [STATUS_WAITING_FOR_ASYNC] = "WAITING_FOR_ASYNC",
    [STATUS_WAITING_FOR_RETRY] = "WAITING_FOR_RETRY",
    [STATUS_WAITING_FOR_TSQ] = "WAITING_FOR_TSQ",
    [STATUS_COMPENSATING] = "COMPENSATING",
    [STATUS_COMPENSATED] = "COMPENSATED",
    [STATUS_COMPLETED] = "COMPLETED",
    [STATUS_CANCELED] = "CANCELED",
    [STATUS_FAILED] = "FAILED",
};

const char *const process_phase_names[PHASES] = {
    [PHASE_FORWARD] = "FORWARD",
    [PHASE_COMPENSATING] = "COMPENSATING",
};

const char *const parking_code_names[PARKING_CODES] = {
    [PARKED_PERMANENT_FAILURE] = "PERMANENT_FAILURE",
    [PARKED_PROCESS_TOO_LARGE] = "PROCESS_TOO_LARGE",
    [PARKED_NON_DETERMINISTIC] = "NON_DETERMINISTIC",
    [PARKED_RETRIES_EXHAUSTED] = "RETRIES_EXHAUSTED",
    [PARKED_RETRIES_EXHAUSTED_CRASH_RECOVERY] = "RETRIES_EXHAUSTED_CRASH_RECOVERY",
    [PARKED_WAIT_TIMEOUT] = "WAIT_TIMEOUT",
    [PARKED_COMMAND_IN_TSQ] = "COMMAND_IN_TSQ",
    [PARKED_COMMAND_STEP_TIMEOUT] = "COMMAND_STEP_TIMEOUT",
    [PARKED_OUTCOME_UNKNOWN] = "OUTCOME_UNKNOWN",
    [PARKED_COMPENSATION_FAILED] = "COMPENSATION_FAILED",
    [PARKED_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
};

const char *const leaving_way_names[WAYS_OF_LEAVING] = {
    [LEAVING_NOT] = "",
    [LEAVING_TO_COMPENSATE] = "COMPENSATE",
    [LEAVING_TO_END] = "END",
};

int name_index(const char *word, const char *const *names, int n)
{
    for (int i = 0; word && i < n; i++) {
        if (strcmp(names[i], word) == 0)
            return i;
    }
    return n;
}

process_status process_status_named(const char *word)
{
    int i = name_index(word, process_status_names, STATUSES);

    return i < STATUSES ? (process_status)i : STATUS_EXECUTING;
}

parking_code parking_code_named(const char *word)
{
    return (parking_code)name_index(word, parking_code_names, PARKING_CODES);
}

bool process_status_is_end(process_status status)
{
    return status == STATUS_COMPENSATED || status == STATUS_COMPLETED ||
           status == STATUS_CANCELED || status == STATUS_FAILED;
}
