/* BadResult {"kind": "nan"}: succeeds with a result that no database takes. The kinds are in the
 * table below. */
#include "sample_fields.h"
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_object *not_a_number(void)
{
    return json_object_new_double(NAN);
}

static json_object *infinity(void)
{
    return json_object_new_double(INFINITY);
}

/* 2,000 arrays inside each other. */
static json_object *deep(void)
{
    json_object *inner = json_object_new_array();

    for (int i = 0; i < 2000; i++) {
        json_object *outer = json_object_new_array();
        json_object_array_add(outer, inner);
        inner = outer;
    }
    return inner;
}

static json_object *no_utf8(void)
{
    return json_object_new_string("caf\xe9");
}

static json_object *nul(void)
{
    return json_object_new_string_len("a\0b", 3);
}

/* 8 MiB. */
static json_object *large(void)
{
    size_t length = (size_t)8 << 20;
    char *text = malloc(length);

    memset(text, 'x', length);
    json_object *value = json_object_new_string_len(text, (int)length);
    free(text);
    return value;
}

static const struct {
    const char *name;
    json_object *(*make)(void);
} kinds[] = {
    { "nan", not_a_number }, { "infinity", infinity }, { "deep", deep },
    { "utf8", no_utf8 },     { "nul", nul },           { "large", large },
};

cb_outcome trial_bad_result(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    fields f = fields_of(ctx);
    const char *kind = field_text(&f, "kind");

    for (size_t i = 0; i < CB_COUNT(kinds); i++) {
        if (strcmp(kind, kinds[i].name) == 0) {
            *result = json_object_new_object();
            json_object_object_add(*result, "value", kinds[i].make());
            return CB_SUCCESS;
        }
    }
    fields_object(&f, "\"kind\" must be nan, infinity, deep, utf8, nul or large");
    return fields_refuse(&f, ctx);
}
