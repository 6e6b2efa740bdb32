/* What the commands about processes share: which processes, and moments to come. */
#ifndef CLI_PROCESS_ARGS_H
#define CLI_PROCESS_ARGS_H

#include "filter.h"

#include <commandbus/process_query.h>

extern const char *const process_statuses[];

/* Table rows, beside those of filter.h. `at` is the caller's offsetof macro. */
/* clang-format off */
#define PROCESS_TYPE(at) \
    { "type", ARG_TEXT, at(type), "TYPE", .help = "of this process type" }
#define PROCESS_STATUS(at) \
    { "status", ARG_CHOICE, at(status), "STATUS", "in this status; OPEN: not ended", .choices = process_statuses }
#define PROCESS_FROM(at) \
    { "from", ARG_OTHER, at(from), "TIME", .read = moment_read, .help = "started since then: ISO 8601, or an age such as 2h" }
#define PROCESS_TO(at) \
    { "to", ARG_OTHER, at(to), "TIME", .read = moment_read, .help = "started before then" }
#define PROCESS_OLDER(at, text) \
    { "older-than", ARG_DURATION, at(older_than), "AGE", text, .max = 3162240000000LL }
#define PROCESS_DEADLINE(at, text) \
    { "deadline", ARG_TEXT, at, "TIME|+TIME", .help = text }
/* clang-format on */

/* The library's filter. Borrows from args. */
cb_process_filter process_filter_of(filter_args *args);

/* A deadline as the library takes it: an ISO 8601 time as it is, "+4h" counted from now by the database's
 * clock. */
typedef struct {
    char text[64]; /* empty: none was given */
} process_deadline;

/* Without a database: what is neither is refused, CB_MISUSE. */
bool process_deadline_check(const char *text, cb_error *e);
/* Of a checked text (NULL: none). */
bool process_deadline_of(cb_db *db, const char *text, process_deadline *ret, cb_error *e);

#endif
