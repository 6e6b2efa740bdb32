/* Starting a batch of processes from a program: left to the workers. */
#include <stdlib.h>

#include "start.h"

typedef struct {
    const cb_start_batch_options *options;
    json_object **json; /* owns the texts */
    const char **states;
    size_t n;
    cb_uuid *id;
} process_batch;

#define OWNED_BATCH(name) __attribute__((cleanup(batch_done))) process_batch name

static void batch_done(process_batch *b)
{
    for (size_t i = 0; b->json && i < b->n; i++)
        json_object_put(b->json[i]);
    free(b->json);
    free(b->states);
}

static bool write_states(process_batch *b, const cb_process_type *type, const char *states,
                         cb_error *e)
{
    b->json = calloc(b->n + 1, sizeof *b->json);
    b->states = calloc(b->n + 1, sizeof *b->states);
    if (!b->json || !b->states)
        return cb_fail(e, CB_MEMORY, "no memory for the states");
    for (size_t i = 0; i < b->n; i++) {
        b->json[i] = start_state(type, states + i * type->state->size, e);
        if (!b->json[i])
            return cb_fail_while(e, "writing state %zu of %zu", i + 1, b->n);
        b->states[i] = json_object_to_json_string_ext(b->json[i], JSON_C_TO_STRING_PLAIN);
    }
    return true;
}

static bool request_batch(cb_db *db, const void *what, cb_error *e)
{
    const process_batch *b = what;

    return cb_start_batch(db, b->options, b->states, b->n, b->id, e);
}

bool cb_process_start_batch_with(cb_db *db, const cb_process_types *types, const char *type,
                                 const void *states, size_t n,
                                 const cb_start_batch_options *options, cb_uuid *id, cb_error *e)
{
    cb_start_batch_options named = options ? *options : (cb_start_batch_options){ 0 };
    const type_entry *entry = start_type(types, type, e);

    named.process_type = type;
    OWNED_BATCH(b) = { .options = &named, .n = n, .id = id };
    return entry && write_states(&b, entry->type, states, e) &&
           start_registered(db, types, entry, request_batch, &b, e);
}
