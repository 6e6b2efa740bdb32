/* The JSON files of this set. */
#include "document.h"

#include <json-c/json_tokener.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

enum {
    DEEPEST = 8
};

static json_object *parse(const char *bytes, size_t n)
{
    json_tokener *tokener = json_tokener_new_ex(DEEPEST);
    json_object *document = NULL;

    if (!tokener)
        return NULL;
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    if (n < INT_MAX)
        document = json_tokener_parse_ex(tokener, bytes, (int)n + 1); /* the NUL ends a number */
    if (json_tokener_get_error(tokener) != json_tokener_success ||
        !json_object_is_type(document, json_type_object)) {
        json_object_put(document);
        document = NULL;
    }
    json_tokener_free(tokener);
    return document;
}

bool document_read(cb_context *ctx, const cb_command *command, const char *field, const char *text,
                   file_kind kind, json_object **ret, cb_outcome *failed)
{
    cb_error e = { 0 };
    const char *problem;
    file_path path;
    char *bytes = NULL;
    size_t n = 0;

    if (!path_parse(text, command, kind, &path, &problem)) {
        *failed = cb_permanent(ctx, "INVALID_PATH", "%s %s", field, problem);
        return false;
    }
    if (!store_read(&path, &bytes, &n, &e)) {
        *failed = store_outcome(ctx, &e);
        return false;
    }
    *ret = parse(bytes, n);
    free(bytes);
    if (!*ret) {
        cb_fail(&e, CB_DATA, "it is not a JSON object");
        *failed = document_corrupt(ctx, &e);
    }
    return *ret != NULL;
}

cb_outcome document_write(cb_context *ctx, const file_path *path, json_object *document)
{
    size_t n = 0;
    const char *text =
        json_object_to_json_string_length(document, JSON_C_TO_STRING_NOSLASHESCAPE, &n);
    cb_error e = { 0 };

    if (!text)
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    if (cb_context_lost(ctx))
        return cb_transient(ctx, "LEASE_LOST", "somebody else may run this command now");
    return store_write(path, text, n, &e) ? CB_SUCCESS : store_outcome(ctx, &e);
}

const char *document_text(json_object *object, const char *name, cb_error *e)
{
    json_object *value = NULL;

    json_object_object_get_ex(object, name, &value);
    if (json_object_is_type(value, json_type_string) &&
        strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value))
        return json_object_get_string(value);
    cb_fail(e, CB_DATA, "there is no text '%s' where one must be", name);
    return NULL;
}

json_object *document_list(json_object *object, const char *name, cb_error *e)
{
    json_object *value = NULL;

    json_object_object_get_ex(object, name, &value);
    if (json_object_is_type(value, json_type_array))
        return value;
    cb_fail(e, CB_DATA, "there is no list '%s' where one must be", name);
    return NULL;
}

cb_outcome document_corrupt(cb_context *ctx, const cb_error *e)
{
    return cb_permanent(ctx, "FILE_CORRUPT", "the file cannot be used: %s", e->message);
}
