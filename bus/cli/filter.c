/* Which commands and which processes: the filter options that the lists and the TSQs share. */
#include "filter.h"

#include "duration.h"

#define DEFAULT_LIMIT 50

const char *const command_statuses[] = {
    "PENDING",
    "IN_PROGRESS",
    "COMPLETED",
    "FAILED",
    "CANCELED",
    "CANCELLED",
    "IN_TROUBLESHOOTING_QUEUE",
    "TSQ",
    NULL,
};

static const char *filter_given(const char *text)
{
    return *text ? text : NULL;
}

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

cb_command_filter filter_of(filter_args *args)
{
    if (args->older_than)
        duration_interval(args->older_than, args->older_than_text, sizeof args->older_than_text);
    return (cb_command_filter){
        .domain = args->domain,
        .command_type = args->type,
        .status = args->status,
        .error_code = args->error_code,
        .batch_id = args->batch,
        .created_from = filter_given(args->from.text),
        .created_to = filter_given(args->to.text),
        .older_than = filter_given(args->older_than_text),
        .limit = args->limit ? args->limit : DEFAULT_LIMIT,
        .offset = args->offset,
    };
}

void filter_note_more(const cli *c, const filter_args *args, size_t shown)
{
    size_t limit = args->limit ? (size_t)args->limit : DEFAULT_LIMIT;

    if (shown == 0)
        cli_note(c, "nothing matches");
    else if (shown == limit)
        cli_note(c, "there may be more: --offset %zu", (size_t)args->offset + shown);
}

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
