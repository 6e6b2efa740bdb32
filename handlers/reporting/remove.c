/* StatementRemove {"path"}: undoes any of the others by removing its file. Gives back {"removed":
 * true}, or false when it was not there: that is a success too, for a removal that runs twice. */
#include "report_messages.h"
#include "reporting.h"
#include "store.h"

static void drop_request(remove_request **request)
{
    cb_fields_free(&remove_request_fields, *request);
}

cb_outcome statement_remove(cb_context *ctx, const cb_command *command, json_object **result)
{
    __attribute__((cleanup(drop_request))) remove_request *request = NULL;
    const char *problem;
    file_path path;
    cb_outcome refused;
    cb_error e = { 0 };
    bool removed;

    if (!message_read(&remove_request_fields, ctx, (void **)&request, &refused))
        return refused;
    if (!path_parse(request->path, command, N_KINDS, &path, &problem))
        return cb_permanent(ctx, "INVALID_PATH", "path %s", problem);
    if (!store_remove(&path, &removed, &e))
        return store_outcome(ctx, &e);
    *result = json_object_new_object();
    json_object_object_add(*result, "removed", json_object_new_boolean(removed));
    return CB_SUCCESS;
}
