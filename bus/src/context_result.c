/* Is what a handler returned a result that the bus can carry? Looked at before it is turned into
 * text: json-c does that by recursion, and slots have small stacks. */
#include <string.h>

#include "context.h"
#include "json.h"

#include <json-c/json_object_iterator.h>

typedef struct {
    size_t least; /* bytes that the text has at least */
    size_t limit;
} measure;

static const char *problem_of(json_object *value, int depth, measure *m);

static const char *problem_of_array(json_object *array, int depth, measure *m)
{
    size_t n = json_object_array_length(array);
    const char *problem = NULL;

    for (size_t i = 0; i < n && !problem; i++)
        problem = problem_of(json_object_array_get_idx(array, i), depth, m);
    return problem;
}

static const char *problem_of_object(json_object *object, int depth, measure *m)
{
    struct json_object_iterator at = json_object_iter_begin(object);
    struct json_object_iterator end = json_object_iter_end(object);
    const char *problem = NULL;

    for (; !json_object_iter_equal(&at, &end) && !problem; json_object_iter_next(&at)) {
        m->least += strlen(json_object_iter_peek_name(&at));
        problem = problem_of(json_object_iter_peek_value(&at), depth, m);
    }
    return problem;
}

/* Every value takes a byte of the text: a value that contains another one many times over, or itself,
 * ends at the limit too. */
static const char *problem_of(json_object *value, int depth, measure *m)
{
    json_type type = json_object_get_type(value);

    m->least += type == json_type_string ? (size_t)json_object_get_string_len(value) : 1;
    if (m->least > m->limit)
        return "it is too large";
    if (type != json_type_array && type != json_type_object)
        return NULL;
    if (depth == JSON_MAX_DEPTH)
        return "nested deeper than 32 levels";
    return type == json_type_array ? problem_of_array(value, depth + 1, m)
                                   : problem_of_object(value, depth + 1, m);
}

static const char *refuse(cb_context *ctx, const char *problem, size_t limit)
{
    context_say(ctx, CB_PERMANENT, "RESULT_INVALID",
                "the handler's result is refused: %s (limit %zu bytes)", problem, limit);
    return NULL;
}

const char *context_result_text(cb_context *ctx, size_t limit)
{
    measure m = { .limit = limit };
    size_t length = 0;
    cb_error e;

    const char *problem = problem_of(ctx->result, 0, &m);
    if (problem)
        return refuse(ctx, problem, limit);

    const char *text = json_object_to_json_string_length(
        ctx->result, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
    if (!text)
        return refuse(ctx, "out of memory for its text", limit);
    if (length > limit)
        return refuse(ctx, "it is too large", limit);
    if (strlen(text) != length)
        return refuse(ctx, "its text contains a NUL", limit);
    if (!json_check_numbers(text, JSON_ANY, JSON_NUMBERS_FINITE, "it", &e))
        return refuse(ctx, e.message, limit);
    return text;
}
