/* What the commands about processes share: which processes, and moments to come. */
#include "process_args.h"

#include "duration.h"
#include "moment.h"

#include <stdio.h>
#include <string.h>

const char *const process_statuses[] = {
    "PENDING",
    "EXECUTING",
    "WAITING_FOR_REPLY",
    "WAITING_FOR_ASYNC",
    "WAITING_FOR_RETRY",
    "WAITING_FOR_TSQ",
    "TSQ",
    "COMPENSATING",
    "COMPENSATED",
    "COMPLETED",
    "CANCELED",
    "CANCELLED",
    "FAILED",
    "IN_PROGRESS",
    "WAITING",
    "OPEN",
    NULL,
};

cb_process_filter process_filter_of(filter_args *args)
{
    const cb_command_filter same = filter_of(args);

    return (cb_process_filter){
        .domain = same.domain,
        .process_type = same.command_type,
        .status = same.status,
        .error_code = same.error_code,
        .batch_id = same.batch_id,
        .created_from = same.created_from,
        .created_to = same.created_to,
        .older_than = same.older_than,
        .limit = same.limit,
        .offset = same.offset,
    };
}

/* "+4h" */
static bool is_from_now(const char *text, int64_t *ms)
{
    const char *why = NULL;

    return *text == '+' && duration_parse(text + 1, false, ms, &why);
}

bool process_deadline_check(const char *text, cb_error *e)
{
    process_deadline room;
    int64_t ms = 0;

    if (!text || is_from_now(text, &ms))
        return true;
    if (strlen(text) < sizeof room.text && moment_is_date(text))
        return true;
    return cb_fail(e, CB_MISUSE,
                   "--deadline must be a time such as 2026-03-01T08:00:00Z, or +4h from now; not "
                   "'%.40s'",
                   text);
}

bool process_deadline_of(cb_db *db, const char *text, process_deadline *ret, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;
    char interval[DURATION_SIZE];
    int64_t ms = 0;

    if (!process_deadline_check(text, e))
        return false;
    if (!text || !is_from_now(text, &ms)) {
        snprintf(ret->text, sizeof ret->text, "%s", text ? text : "");
        return true;
    }
    if (!cb_process_moment(db, duration_interval(ms, interval, sizeof interval), &rows, e))
        return false;
    snprintf(ret->text, sizeof ret->text, "%s", cb_rows_get(rows, 0, "moment"));
    return true;
}
