/* What bad input gets: the right code, advice, and nothing changed. */
#include "expect.h"
#include "fixture.h"
#include "life.h"

#include <math.h>
#include <stdio.h>

#define SECRET "4929-1234-SECRET"

TestSuite(bad_input, .init = bus_open, .fini = bus_close);

typedef struct {
    const char *what;
    cb_code code;
    cb_send command; /* to domain fx and of type BookFx unless it says otherwise */
} bad_command;

static const bad_command bad_commands[] = {
    { "an array", CB_INVALID_DATA, { .data = "[\"" SECRET "\"]" } },
    { "a string", CB_INVALID_DATA, { .data = "\"" SECRET "\"" } },
    { "a number", CB_INVALID_DATA, { .data = "4929" } },
    { "null", CB_INVALID_DATA, { .data = "null" } },
    { "nothing", CB_INVALID_DATA, { .data = "" } },
    { "no JSON", CB_INVALID_DATA, { .data = "{\"card\": \"" SECRET "\"" } },
    { "two values", CB_INVALID_DATA, { .data = "{} {\"card\": \"" SECRET "\"}" } },
    { "NaN", CB_INVALID_DATA, { .data = "{\"card\": NaN}" } },
    { "a NUL", CB_INVALID_DATA, { .data = "{\"card\": \"" SECRET "\\u0000\"}" } },
    { "a NUL in a key", CB_INVALID_DATA, { .data = "{\"" SECRET "\\u0000\": 1}" } },
    { "half a surrogate", CB_INVALID_DATA, { .data = "{\"card\": \"" SECRET "\\ud800\"}" } },
    { "broken UTF-8", CB_INVALID_DATA, { .data = "{\"card\": \"" SECRET "\xff\"}" } },
    { "overlong UTF-8", CB_INVALID_DATA, { .data = "{\"card\": \"" SECRET "\xc0\x80\"}" } },
    { "headers that are an array", CB_INVALID_DATA, { .headers = "[\"" SECRET "\"]" } },
    { "headers that are not JSON", CB_INVALID_DATA, { .headers = "{" SECRET } },
    { "negative attempts", CB_INVALID_DATA, { .max_attempts = -1 } },
    { "too many attempts", CB_INVALID_DATA, { .max_attempts = 1001 } },
    { "negative timeout", CB_INVALID_DATA, { .timeout_seconds = -1 } },
    { "too long a timeout", CB_INVALID_DATA, { .timeout_seconds = 86401 } },
    { "negative delay", CB_INVALID_DATA, { .delay_seconds = -0.001 } },
    { "too long a delay", CB_INVALID_DATA, { .delay_seconds = 31536001 } },
    { "no delay at all", CB_INVALID_DATA, { .delay_seconds = NAN } },
    { "endless delay", CB_INVALID_DATA, { .delay_seconds = INFINITY } },
    { "bad command_id", CB_INVALID_DATA, { .command_id = "12345" } },
    { "bad command_id", CB_INVALID_DATA, { .command_id = "0190c2a0-0000-7000-8000-00000000000g" } },
    { "the id of a process's command",
      CB_INVALID_DATA,
      { .command_id = "0190c2a0-0000-8000-8000-000000000000" } },
    { "bad correlation_id", CB_INVALID_DATA, { .correlation_id = "" } },
    { "bad batch_id", CB_INVALID_DATA, { .batch_id = "x" } },
    { "unknown batch", CB_BATCH_NOT_FOUND, { .batch_id = "0190c2a0-0000-7000-8000-000000000000" } },
    { "empty type", CB_INVALID_NAME, { .command_type = "" } },
    { "type with a space", CB_INVALID_NAME, { .command_type = "Book Fx" } },
    { "type with a quote", CB_INVALID_NAME, { .command_type = "Book'Fx" } },
    { "type with a digit first", CB_INVALID_NAME, { .command_type = "1Book" } },
    { "type with a newline", CB_INVALID_NAME, { .command_type = "BookFx\n" } },
};

static cb_send with_domain(cb_send command)
{
    command.domain = "fx";
    if (!command.command_type)
        command.command_type = "BookFx";
    return command;
}

static void expect_no_secret(const cb_error *e, const char *what)
{
    cr_assert(!strstr(e->message, "SECRET"), "%s: %s", what, e->message);
    cr_assert(!strstr(e->hint, "SECRET"), "%s: %s", what, e->hint);
}

/* BUS.3 */
Test(bad_input, to_send_is_refused_and_nothing_changed)
{
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof bad_commands / sizeof *bad_commands; i++) {
        const bad_command *bad = &bad_commands[i];
        cb_send command = with_domain(bad->command);
        cb_error e = { 0 };
        cr_assert_not(cb_send_command(bus.db, &command, NULL, &e), "%s was taken", bad->what);
        cr_assert_eq(e.code, bad->code, "%s: %s %s", bad->what, cb_code_name(e.code), e.message);
        cr_assert(*e.message);
        expect_no_secret(&e, bad->what);
    }

    expect_unchanged(before, bus_contents());
}

/* BUS.3 */
Test(bad_input, without_domain_or_type_is_the_callers_mistake)
{
    cb_error e = { 0 };
    char *before = bus_contents();

    expect_error(CB_MISUSE,
                 cb_send_command(bus.db, &(cb_send){ .command_type = "BookFx" }, NULL, &e), e);
    expect_error(CB_MISUSE, cb_send_command(bus.db, &(cb_send){ .domain = "fx" }, NULL, &e), e);

    expect_unchanged(before, bus_contents());
}

/* BUS.4 */
Test(bad_input, among_good_commands_of_send_many_is_refused_and_nothing_was_sent)
{
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof bad_commands / sizeof *bad_commands; i++) {
        const bad_command *bad = &bad_commands[i];
        const cb_send commands[] = { { .domain = "fx", .command_type = "BookFx" },
                                     with_domain(bad->command),
                                     { .domain = "risk", .command_type = "BookRisk" } };
        size_t sent = 99;
        cb_error e = { 0 };
        cr_assert_not(cb_send_many(bus.db, commands, 3, NULL, NULL, &sent, &e), "%s was taken",
                      bad->what);
        cr_assert_eq(e.code, bad->code, "%s: %s %s", bad->what, cb_code_name(e.code), e.message);
        cr_assert_eq(sent, 0);
        expect_no_secret(&e, bad->what);
    }

    expect_unchanged(before, bus_contents());
}

/* BUS.4: the arrays of the C library and the JSON of others are refused in the same words */
Test(bad_input, to_send_many_is_refused_alike_by_c_and_by_sql)
{
    static const struct {
        cb_send command;
        const char *json; /* what differs from a good command */
    } calls[] = {
        { { .domain = "nowhere", .command_type = "B" }, "{\"domain\": \"nowhere\"}" },
        { { .domain = "fx", .command_type = "1B" }, "{\"command_type\": \"1B\"}" },
        { { .domain = "fx", .command_type = "B", .reply_to = "fx__commands" },
          "{\"reply_to\": \"fx__commands\"}" },
        { { .domain = "fx", .command_type = "B", .max_attempts = 1001 },
          "{\"max_attempts\": 1001}" },
        { { .domain = "fx", .command_type = "B", .timeout_seconds = 86401 },
          "{\"timeout_seconds\": 86401}" },
        { { .domain = "fx", .command_type = "B", .delay_seconds = 31536001 },
          "{\"delay_seconds\": 31536001}" },
    };
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const cb_send commands[] = { { .domain = "fx", .command_type = "B" }, calls[i].command };
        cb_error e = { 0 };
        PGresult *by_sql = PQexecParams(
            bus.conn,
            "SELECT commandbus.send_many('[{\"domain\": \"fx\", \"command_type\": \"B\"}]' || "
            "('{\"domain\": \"fx\", \"command_type\": \"B\"}'::jsonb || $1::jsonb))",
            1, NULL, &calls[i].json, NULL, NULL, 0);
        const char *refusal = PQresultErrorField(by_sql, PG_DIAG_MESSAGE_PRIMARY);

        cr_assert_not(cb_send_many(bus.db, commands, 2, NULL, NULL, NULL, &e));
        cr_assert(refusal && *e.message && strstr(refusal, e.message), "%s / %s", refusal,
                  e.message);
        cr_assert_str_eq(e.sqlstate, PQresultErrorField(by_sql, PG_DIAG_SQLSTATE));
        PQclear(by_sql);
    }

    expect_unchanged(before, bus_contents());
}

/* BUS.3: also for a client that has nothing but SQL */
Test(bad_input, by_sql_is_refused_and_nothing_changed)
{
    static const struct {
        const char *sqlstate, *sql;
    } calls[] = {
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', '[1]')" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', '\"" SECRET "\"')" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', 'null')" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', NULL)" },
        { "22P02", "SELECT commandbus.send('fx', 'BookFx', '{')" },
        { "22P05", "SELECT commandbus.send('fx', 'BookFx', '{\"a\": \"\\u0000\"}')" },
        { "22021", "SELECT commandbus.send('fx', 'BookFx', '{\"a\": \"\xff\"}')" },
        { "22P02", "SELECT commandbus.send('fx', 'BookFx', command_id => 'x')" },
        { "CB010", "SELECT commandbus.send('fx', NULL)" },
        { "CB010", "SELECT commandbus.send('fx', 'Book''Fx')" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', max_attempts => 0)" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', max_attempts => -1)" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', timeout_seconds => 0)" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', delay_seconds => -1)" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', delay_seconds => 'NaN')" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', headers => '[]')" },
        { "CB011", "SELECT commandbus.send('fx', 'BookFx', headers => 'null')" },
        { "CB004", "SELECT commandbus.send('fx', 'BookFx', batch_id => gen_random_uuid())" },
        { "CB011", "SELECT commandbus.send_many(NULL)" },
        { "CB011", "SELECT commandbus.send_many('{}')" },
        { "CB011", "SELECT commandbus.send_many('[1]')" },
        { "CB011", "SELECT commandbus.send_many('[[]]')" },
        { "CB011", "SELECT commandbus.create_batch('fx', commands => '[[]]')" },
        { "CB011", "SELECT commandbus.send_many('[{\"domain\": \"fx\", \"command_type\": \"B\", "
                   "\"data\": [1]}]')" },
        { "CB008", "SELECT commandbus.send_arrays('{fx,nowhere}', '{B,B}')" },
        { "CB008", "SELECT commandbus.send_arrays('{fx,NULL}', '{B,B}')" },
        { "CB010", "SELECT commandbus.send_arrays('{fx}', '{NULL}')" },
        { "CB010", "SELECT commandbus.send_arrays('{fx}', '{B}', reply_tos => '{fx__commands}')" },
        { "CB011", "SELECT commandbus.send_arrays('{fx}', NULL)" },
        { "CB011", "SELECT commandbus.send_arrays('{fx,fx}', '{B}')" },
        { "CB011", "SELECT commandbus.send_arrays('{fx}', '{B}', command_ids => '{}')" },
        { "CB011", "SELECT commandbus.send_arrays(NULL, '{B}')" },
        { "CB011", "SELECT commandbus.send_arrays('{fx}', '{B}', ARRAY['[1]'::jsonb])" },
        { "CB011", "SELECT commandbus.send_arrays('{fx}', '{B}', ARRAY['null'::jsonb])" },
        { "CB011", "SELECT commandbus.send_arrays('{fx}', '{B}', delay_seconds => '{NaN}')" },
        { "CB011", "SELECT commandbus.send_arrays('{fx}', '{B}', max_attempts => '{0}')" },
        { "CB006", "SELECT commandbus.create_batch_arrays('fx', NULL, NULL, NULL, NULL, '{}')" },
        { "CB006", "SELECT commandbus.create_batch_arrays('fx', NULL, NULL, NULL, NULL, NULL)" },
    };
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        expect_sqlstate(bus.conn, calls[i].sqlstate, calls[i].sql);
        cr_assert(!strstr(PQerrorMessage(bus.conn), SECRET), "%s", PQerrorMessage(bus.conn));
    }

    expect_unchanged(before, bus_contents());
}

static char *secret_of(size_t bytes)
{
    char *json = malloc(bytes + 1);
    size_t used = (size_t)snprintf(json, bytes + 1, "{\"card\": \"" SECRET);

    memset(json + used, 'x', bytes - used - 2);
    memcpy(json + bytes - 2, "\"}", 3);
    return json;
}

/* BUS.3 */
Test(bad_input, above_the_payload_limit_is_refused_and_at_the_limit_it_is_taken)
{
    char *fits = secret_of(1048576), *too_large = secret_of(1048577);
    cb_error e = { 0 };
    cb_send command = { .domain = "fx", .command_type = "BookFx", .data = too_large };
    char *before = bus_contents();

    expect_error(CB_PAYLOAD_TOO_LARGE, cb_send_command(bus.db, &command, NULL, &e), e);
    expect_no_secret(&e, "too large");
    cr_assert(strstr(e.message, "1048577") && strstr(e.message, "1048576"), "%s", e.message);
    expect_error(CB_PAYLOAD_TOO_LARGE, cb_send_many(bus.db, &command, 1, NULL, NULL, NULL, &e), e);
    expect_unchanged(before, bus_contents());

    command.data = fits;
    expect_ok(cb_send_command(bus.db, &command, NULL, &e), e);
    expect_ok(cb_send_many(bus.db, &command, 1, NULL, NULL, NULL, &e), e);
    free(fits);
    free(too_large);
}

/* BUS.3 */
Test(bad_input, that_was_sent_before_is_refused_whatever_became_of_it)
{
    cb_error e = { 0 };
    cb_uuid pending = life_send("delay_seconds => 60"), done = life_run("", "SUCCESS"),
            failed = life_run("", "BUSINESS_RULE"), stuck = life_into_tsq("");
    const cb_uuid *const ids[] = { &pending, &done, &failed, &stuck };
    char *before = bus_contents();

    for (size_t i = 0; i < 4; i++) {
        cb_send command = { .domain = "fx",
                            .command_type = "Other",
                            .command_id = ids[i]->text,
                            .data = "{\"card\": \"" SECRET "\"}" };
        expect_error(CB_DUPLICATE_COMMAND, cb_send_command(bus.db, &command, NULL, &e), e);
        cr_assert(strstr(e.message, ids[i]->text), "%s", e.message);
        cr_assert(*e.hint);
        expect_no_secret(&e, "duplicate");
    }

    expect_unchanged(before, bus_contents());
}
