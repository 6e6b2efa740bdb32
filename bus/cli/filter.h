/* Which commands and which processes: the filter options that the lists and the TSQs share. */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include "cli.h"
#include "figures.h"

#include <commandbus/process_query.h>
#include <commandbus/query.h>

typedef struct {
    const char *domain, *type, *status, *error_code, *batch;
    moment_arg from, to;
    int64_t older_than;
    int limit, offset;
    char older_than_text[48]; /* older_than as the library takes it; made by filter_of */
} filter_args;

extern const char *const command_statuses[], *const process_statuses[];

/* Table rows. `at` is the caller's offsetof macro. */
/* clang-format off */
#define FILTER_DOMAIN(at) \
    { "domain", ARG_TEXT, at(domain), "DOMAIN", .help = "of this domain" }
#define FILTER_TYPE(at, noun) \
    { "type", ARG_TEXT, at(type), "TYPE", .help = "of this " noun " type" }
#define FILTER_STATUS(at, text, statuses) \
    { "status", ARG_CHOICE, at(status), "STATUS", text, .choices = statuses }
#define FILTER_ERROR(at) \
    { "error-code", ARG_TEXT, at(error_code), "CODE", .help = "with this error code" }
#define FILTER_BATCH(at) \
    { "batch", ARG_ID, at(batch), "ID", .help = "of this batch" }
#define FILTER_FROM(at, done) \
    { "from", ARG_OTHER, at(from), "TIME", .read = moment_read, \
      .help = done " since then: ISO 8601, or an age such as 2h" }
#define FILTER_TO(at, done) \
    { "to", ARG_OTHER, at(to), "TIME", .read = moment_read, .help = done " before then" }
#define FILTER_OLDER(at, text) \
    { "older-than", ARG_DURATION, at(older_than), "AGE", text, .max = 3162240000000LL }
#define FILTER_LIMIT(at, most) \
    { "limit", ARG_INT, at(limit), "N", "at most so many [" most "]", .min = 1, .max = 1000000 }
#define FILTER_OFFSET(at) \
    { "offset", ARG_INT, at(offset), "N", "leave out the first N", .max = 2147483647 }
/* clang-format on */

/* The library's filter. Borrows from args. */
cb_command_filter filter_of(filter_args *args);
cb_process_filter process_filter_of(filter_args *args);

/* Says how to see more when a list may have been cut off, or that there was nothing. */
void filter_note_more(const cli *c, const filter_args *args, size_t shown);

#endif
