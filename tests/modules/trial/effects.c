/* Effects on sample.ledger (`commandbus migrate --set sample`).
 *
 * ManyEffects {"n": 17}: n rows; gives back {"taken": 16}, how many of them were accepted.
 * BadEffect {"kind": "null"}: one good row and then a statement of which the database says no:
 *     null    violates NOT NULL (23502)
 *     type    not a number (22P02)
 *     table   a table that is not there (42P01)
 *     lock    the row of command_id {"key"}, for which it waits when somebody else has just put
 *             it there
 *     sql     whatever {"sql"} says */
#include "sample_fields.h"
#include "trial.h"

#include <string.h>

#define INSERT "INSERT INTO sample.ledger (command_id, account, amount) VALUES "

cb_outcome trial_many_effects(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    fields f = fields_of(ctx);
    int64_t n = field_integer(&f, "n", 0, 1000);
    int taken = 0;
    if (f.problem[0])
        return fields_refuse(&f, ctx);

    for (int64_t i = 0; i < n; i++) {
        const char *values[] = { "many", "1.00" };
        taken += cb_context_effect(ctx, INSERT "(gen_random_uuid(), $1, $2)", 2, values);
    }
    *result = json_object_new_object();
    json_object_object_add(*result, "taken", json_object_new_int(taken));
    return CB_SUCCESS;
}

/* Each takes $1, a key of its own. */
static const struct {
    const char *name, *sql;
} kinds[] = {
    { "null", INSERT "($1, NULL, 1)" },
    { "type", INSERT "($1, 'type', 'a few'::text::numeric)" },
    { "table", "INSERT INTO sample.not_there (command_id) VALUES ($1)" },
    { "lock", INSERT "($1, 'lock', 1)" },
};

static const char *find_sql(fields *f)
{
    const char *kind = field_text(f, "kind");

    if (strcmp(kind, "sql") == 0)
        return field_text(f, "sql");
    for (size_t i = 0; i < CB_COUNT(kinds); i++) {
        if (strcmp(kind, kinds[i].name) == 0)
            return kinds[i].sql;
    }
    fields_object(f, "\"kind\" must be null, type, table, lock or sql");
    return NULL;
}

cb_outcome trial_bad_effect(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)result;
    fields f = fields_of(ctx);
    const char *sql = find_sql(&f);
    const char *key = field_text_or(&f, "key", "00000000-0000-0000-0000-000000000001");
    if (f.problem[0])
        return fields_refuse(&f, ctx);

    cb_context_effect(ctx, INSERT "($1, 'good', 1)", 1,
                      (const char *[]){ command->command_id.text });
    cb_context_effect(ctx, sql, strstr(sql, "$1") ? 1 : 0, (const char *[]){ key });
    return CB_SUCCESS;
}
