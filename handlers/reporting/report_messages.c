/* What the commands of this set carry and give back. */
#include "report_messages.h"

const char *const output_types[] = { "none", "pdf", "html", "csv", NULL };

CB_FIELDS_DEFINE(query_request_fields, query_request, CB_FIELD(query_request, from_date, CB_DATE),
                 CB_FIELD(query_request, to_date, CB_DATE),
                 CB_FIELD_LIST(query_request, account_list, CB_TEXT, LONGEST_ACCOUNT_LIST));
CB_FIELDS_DEFINE(aggregation_request_fields, aggregation_request,
                 CB_FIELD(aggregation_request, data_path, CB_TEXT));
CB_FIELDS_DEFINE(render_request_fields, render_request,
                 CB_FIELD(render_request, aggregated_data_path, CB_TEXT),
                 CB_FIELD_ENUM(render_request, output_type, output_types));
CB_FIELDS_DEFINE(remove_request_fields, remove_request, CB_FIELD(remove_request, path, CB_TEXT));
CB_FIELDS_DEFINE(path_reply_fields, path_reply, CB_FIELD(path_reply, result_path, CB_TEXT));

bool message_read(const cb_fields *fields, cb_context *ctx, void **ret, cb_outcome *refused)
{
    void *message = cb_fields_new(fields);
    cb_error e = { 0 };

    if (!message) {
        *refused = cb_transient(ctx, "NO_MEMORY", "out of memory");
        return false;
    }
    if (!cb_fields_read(fields, message, cb_context_data(ctx), NULL, &e)) {
        cb_fields_free(fields, message);
        *refused = cb_permanent(ctx, "INVALID_DATA", "%s", e.message);
        return false;
    }
    *ret = message;
    return true;
}

json_object *message_path_reply(const char *path)
{
    json_object *reply = json_object_new_object();

    json_object_object_add(reply, "result_path", json_object_new_string(path));
    return reply;
}
