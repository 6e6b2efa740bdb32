/* StatementRender {"aggregated_data_path", "output_type": "pdf" | "html" | "csv"}: an aggregate as
 * a file for people. Gives back {"result_path"}. */
#include "render.h"

#include <stdlib.h>

#include "document.h"
#include "report_messages.h"
#include "reporting.h"
#include "store.h"

static render_fn *const renderers[] = {
    [OUTPUT_NONE] = NULL,
    [OUTPUT_PDF] = render_pdf,
    [OUTPUT_HTML] = render_html,
    [OUTPUT_CSV] = render_csv,
};

static void drop_request(render_request **request)
{
    cb_fields_free(&render_request_fields, *request);
}

static cb_outcome write_file(cb_context *ctx, const file_path *path, const char *bytes, size_t n)
{
    cb_error e = { 0 };

    if (cb_context_lost(ctx))
        return cb_transient(ctx, "LEASE_LOST", "somebody else may run this command now");
    return store_write(path, bytes, n, &e) ? CB_SUCCESS : store_outcome(ctx, &e);
}

static cb_outcome render(cb_context *ctx, const statement *s, render_fn *renderer,
                         const file_path *path)
{
    char *bytes = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&bytes, &n);

    if (!out)
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    bool rendered = renderer(s, out) && !ferror(out);
    rendered = fclose(out) == 0 && rendered;
    cb_outcome outcome = rendered ? write_file(ctx, path, bytes, n)
                                  : cb_transient(ctx, "RENDER_FAILED", "the file was not finished");
    free(bytes);
    return outcome;
}

static cb_outcome make(cb_context *ctx, const cb_command *command, const render_request *request,
                       const file_path *path)
{
    OWNED(json_object) document = NULL;
    OWNED(statement) s = NULL;
    cb_outcome failed;
    cb_error e = { 0 };

    if (!document_read(ctx, command, "aggregated_data_path", request->aggregated_data_path,
                       KIND_AGGREGATE, &document, &failed))
        return failed;
    if (!statement_open(document, &s, &e))
        return document_corrupt(ctx, &e);
    return render(ctx, s, renderers[request->output_type], path);
}

cb_outcome statement_render(cb_context *ctx, const cb_command *command, json_object **result)
{
    __attribute__((cleanup(drop_request))) render_request *request = NULL;
    cb_outcome outcome;
    cb_error e = { 0 };
    bool is_done;

    if (!message_read(&render_request_fields, ctx, (void **)&request, &outcome))
        return outcome;
    if (!renderers[request->output_type])
        return cb_permanent(ctx, "INVALID_DATA", "output_type must be pdf, html or csv");
    file_path path = path_of(command, KIND_STATEMENT, output_types[request->output_type]);
    if (!store_has(&path, &is_done, &e))
        return store_outcome(ctx, &e);
    if (!is_done && (outcome = make(ctx, command, request, &path)) != CB_SUCCESS)
        return outcome;
    *result = message_path_reply(path.text);
    return CB_SUCCESS;
}
