/* Rows of receive.sql as another release might give them. */
#include "claim.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    COLUMNS = 15
};

/* A command as receive.sql gives it. */
static const struct {
    const char *name, *bytes;
    int length; /* -1: NULL */
} command[COLUMNS] = {
    { "event", NULL, -1 },
    { "command_id", "0123456789abcdef", 16 },
    { "msg_id", "\0\0\0\0\0\0\0\7", 8 },
    { "lease_no", "\0\0\0\0\0\0\0\3", 8 },
    { "attempt", "\0\0\0\1", 4 },
    { "max_attempts", "\0\0\0\3", 4 },
    { "timeout_seconds", "\0\0\0\36", 4 },
    { "command_type", "BookFx", 6 },
    { "correlation_id", NULL, -1 },
    { "reply_to", NULL, -1 },
    { "batch_id", NULL, -1 },
    { "waited_us", "\0\0\0\0\0\0\0\1", 8 },
    { "visible_at", "\0\0\0\0\0\0\0\1", 8 },
    { "headers", NULL, -1 },
    { "data", "\1{}", 3 },
};

/* The command with one column of another length. */
static bool is_taken(int column, int length, cb_claim **ret, cb_error *e)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc attributes[COLUMNS] = { 0 };

    for (int i = 0; i < COLUMNS; i++)
        attributes[i] = (PGresAttDesc){ .name = (char *)command[i].name, .format = 1 };
    cr_assert(PQsetResultAttrs(result, COLUMNS, attributes));
    for (int i = 0; i < COLUMNS; i++) {
        int bytes = i == column ? length : command[i].length;
        cr_assert(PQsetvalue(result, 0, i, bytes < 0 ? NULL : (char *)command[i].bytes, bytes));
    }
    return claim_adopt(result, "fx", ret, e);
}

Test(claim, holds_the_command_of_a_row)
{
    OWNED(cb_claim) claim = NULL;
    cb_error e = { 0 };

    cr_assert(is_taken(-1, 0, &claim, &e), "%s", e.message);
    cr_assert_eq(cb_claim_count(claim), 1);
    cr_expect_eq(cb_claim_at(claim, 0)->msg_id, 7);
    cr_expect_eq(cb_claim_at(claim, 0)->timeout_seconds, 30);
    cr_expect_str_eq(cb_claim_at(claim, 0)->data, "{}");
}

/* Found by fuzz_claim: they were read as if they had the length of their type. DESIGN 8.5 */
Test(claim, values_of_other_types_are_refused_and_not_read_beyond_their_end)
{
    static const struct {
        int column, length;
    } wrong[] = { { 1, 4 },  { 1, -1 }, { 2, 4 },  { 3, 0 },  { 4, 2 },
                  { 7, -1 }, { 12, 4 }, { 14, 0 }, { 14, -1 } };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        OWNED(cb_claim) claim = NULL;
        cb_error e = { 0 };
        cr_expect(!is_taken(wrong[i].column, wrong[i].length, &claim, &e), "%s of %d bytes",
                  command[wrong[i].column].name, wrong[i].length);
        cr_expect_eq(e.code, CB_SCHEMA);
    }
}
