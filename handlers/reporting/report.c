/* StatementReport: query, aggregate, render; a machine of steps, each of them a command of this set
 * (PM.7).
 *
 *     {"from_date": "2024-01-01", "to_date": "2024-12-31", "account_list": ["ACC-001"],
 *      "output_type": "pdf"}
 *
 *     statement_query ──▶ statement_data_aggregation ──▶ statement_render ──▶ COMPLETED
 *            ⇣                         ⇣                         ⇣
 *   remove_query_result      remove_aggregated_data     remove_rendered_file      when it is undone
 *
 * At its end the state has the paths of all three files, relative to the output folder. */
#include "report.h"

#include "report_messages.h"

typedef struct {
    cb_date from_date, to_date;
    account_numbers account_list;
    int output_type;
    char *query_result_path, *aggregated_data_path, *rendered_file_path;
} report;

CB_FIELDS(report_fields, report, CB_FIELD(report, from_date, CB_DATE),
          CB_FIELD(report, to_date, CB_DATE),
          CB_FIELD_LIST(report, account_list, CB_TEXT, LONGEST_ACCOUNT_LIST),
          CB_FIELD_ENUM(report, output_type, output_types),
          CB_FIELD(report, query_result_path, CB_TEXT),
          CB_FIELD(report, aggregated_data_path, CB_TEXT),
          CB_FIELD(report, rendered_file_path, CB_TEXT));

enum {
    QUERY = 1,
    AGGREGATE,
    RENDER,
    REMOVE_QUERY,
    REMOVE_AGGREGATE,
    REMOVE_RENDERED,
};

static const cb_manager_step steps[] = {
    [QUERY] = { "statement_query", .command_type = "StatementQuery",
                .request = &query_request_fields, .reply = &path_reply_fields,
                .compensation = REMOVE_QUERY },
    [AGGREGATE] = { "statement_data_aggregation", .command_type = "StatementDataAggregation",
                    .request = &aggregation_request_fields, .reply = &path_reply_fields,
                    .compensation = REMOVE_AGGREGATE },
    [RENDER] = { "statement_render", .command_type = "StatementRender",
                 .request = &render_request_fields, .reply = &path_reply_fields,
                 .compensation = REMOVE_RENDERED },
    [REMOVE_QUERY] = { "remove_query_result", .command_type = "StatementRemove",
                       .request = &remove_request_fields },
    [REMOVE_AGGREGATE] = { "remove_aggregated_data", .command_type = "StatementRemove",
                           .request = &remove_request_fields },
    [REMOVE_RENDERED] = { "remove_rendered_file", .command_type = "StatementRemove",
                          .request = &remove_request_fields },
};

/* Where the reply of a step, and the path that its compensation removes, are kept. */
static char **result_of(int step, report *r)
{
    switch (step) {
    case QUERY:
    case REMOVE_QUERY:
        return &r->query_result_path;
    case AGGREGATE:
    case REMOVE_AGGREGATE:
        return &r->aggregated_data_path;
    default:
        return &r->rendered_file_path;
    }
}

/* The paths are the process's to fill: nobody starts one with them. */
static bool create(void *state)
{
    report *r = state;

    return r->output_type != OUTPUT_NONE && !r->query_result_path && !r->aggregated_data_path &&
           !r->rendered_file_path;
}

static int first(const void *state)
{
    (void)state;
    return QUERY;
}

static bool build_query(const report *r, query_request *request)
{
    request->from_date = r->from_date;
    request->to_date = r->to_date;
    return cb_list_copy(&query_request_fields, request, &request->account_list, &r->account_list);
}

static bool build(int step, const void *state, void *request)
{
    const report *r = state;
    render_request *render = request;

    switch (step) {
    case QUERY:
        return build_query(r, request);
    case AGGREGATE:
        return cb_text_set(&((aggregation_request *)request)->data_path, r->query_result_path);
    case RENDER:
        render->output_type = r->output_type;
        return cb_text_set(&render->aggregated_data_path, r->aggregated_data_path);
    default:
        return cb_text_set(&((remove_request *)request)->path,
                           *result_of(step, (report *)(uintptr_t)r));
    }
}

static bool update(int step, void *state, const void *reply)
{
    const path_reply *answer = reply;

    if (step >= REMOVE_QUERY)
        return true;
    return answer->result_path && cb_text_set(result_of(step, state), answer->result_path);
}

static int next(int step, const void *state)
{
    (void)state;
    return step < RENDER ? step + 1 : 0;
}

static const cb_process_manager manager = {
    .create_state = create,
    .first_step = first,
    .build_command = build,
    .update_state = update,
    .next_step = next,
    .steps = steps,
    .n_steps = CB_COUNT(steps),
};

static const char *const redact[] = { "account_list", NULL };

const cb_process_type statement_report = {
    .name = "StatementReport",
    .domain = "reporting",
    .state = &report_fields,
    .manager = &manager,
    .redact = redact,
};
