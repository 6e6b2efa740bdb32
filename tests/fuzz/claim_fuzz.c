/* Claimed commands as the server sends them, in binary: refused, or commands that a handler can be
 * given.
 *
 * A value is a byte with its length, 255 for NULL, and as many bytes; 15 of them are a row of
 * receive.sql. */
#include "fuzz.h"

#include <commandbus/host.h>
#include <json-c/json.h>

#include "claim.h"
#include "json_check.h"

enum {
    COLUMNS = 15
};

static const struct {
    const char *name;
    int length; /* of every value; 0: any */
} columns[COLUMNS] = {
    { "event", 0 },           { "command_id", 16 },  { "msg_id", 8 },    { "lease_no", 8 },
    { "attempt", 4 },         { "max_attempts", 4 }, { "timeout", 4 },   { "command_type", 0 },
    { "correlation_id", 16 }, { "reply_to", 0 },     { "batch_id", 16 }, { "waited_us", 8 },
    { "visible_at", 8 },      { "headers", 0 },      { "data", 0 },
};

typedef struct {
    const uint8_t *at;
    size_t left;
} bytes;

static const char *take(bytes *in, int *length)
{
    static char value[256];

    *length = in->left > 0 ? *in->at : 0;
    if (*length == 255) {
        in->at++, in->left--;
        *length = -1;
        return NULL;
    }
    if (in->left > 0)
        in->at++, in->left--;
    if ((size_t)*length > in->left)
        *length = (int)in->left;
    memcpy(value, in->at, (size_t)*length);
    in->at += *length, in->left -= (size_t)*length;
    return value;
}

/* *sound: every value is as long as its type says. */
static PGresult *result_of(bytes in, bool *sound)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc attributes[COLUMNS] = { 0 };

    for (int i = 0; i < COLUMNS; i++)
        attributes[i] = (PGresAttDesc){ .name = (char *)columns[i].name, .format = 1 };
    FUZZ_CHECK(result && PQsetResultAttrs(result, COLUMNS, attributes), "no memory");
    *sound = true;
    for (int row = 0; in.left > 0 && row < 8; row++) {
        for (int i = 0; i < COLUMNS; i++) {
            int length = 0;
            const char *value = take(&in, &length);
            *sound = *sound && (!value || !columns[i].length || length == columns[i].length);
            FUZZ_CHECK(PQsetvalue(result, row, i, (char *)value, length), "no memory");
        }
    }
    return result;
}

static cb_outcome echo(cb_context *ctx, const cb_command *command, json_object **result)
{
    json_object *data = cb_context_data(ctx);

    FUZZ_CHECK(json_object_is_type(data, json_type_object), "no object: %s", command->data);
    *result = json_object_get(data);
    return CB_SUCCESS;
}

static void check_command(const cb_command *command)
{
    OWNED(cb_context) ctx = NULL;
    cb_settlement out = { 0 };
    cb_error e = { 0 };

    FUZZ_CHECK(command->data && command->command_type, "no data or no type");
    FUZZ_CHECK(strlen(command->command_id.text) == 36, "%s", command->command_id.text);
    FUZZ_CHECK(cb_context_open(command, NULL, NULL, &ctx, &e), "%s", e.message);
    cb_context_run(ctx, echo, 0, &out);
    if (out.outcome != CB_SUCCESS)
        FUZZ_CHECK(out.error_code && out.error_message, "no reason");
    else
        FUZZ_CHECK(json_check(out.result, JSON_OBJECT, "result", &e), "%s", e.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWNED(cb_claim) claim = NULL;
    bool sound = false;
    cb_error e = { 0 };

    PGresult *result = result_of((bytes){ data, size }, &sound);
    size_t rows = (size_t)PQntuples(result);
    if (!claim_adopt(result, "fx", &claim, &e)) {
        fuzz_refused(&e, CB_SCHEMA);
        return 0;
    }
    FUZZ_CHECK(sound, "a value that is not such a number or id was read");
    FUZZ_CHECK(cb_claim_count(claim) + cb_claim_poisoned(claim) + cb_claim_exhausted(claim) <= rows,
               "more than there are");
    for (size_t i = 0; i < cb_claim_count(claim); i++)
        check_command(cb_claim_at(claim, i));
    return 0;
}
