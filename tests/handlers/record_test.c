/* The sample handler Record: a row and a completed command, both or neither. */
#include "expect.h"
#include "fixture.h"
#include "test_handler.h"

#include <commandbus/host.h>
#include <commandbus/migrate.h>
#include <commandbus/set.h>

static cb_set *sample;

static void open_sample(void)
{
    char folder[512];
    cb_migrate_report done;
    cb_error e = { 0 };

    expect_ok(cb_set_load(getenv("COMMANDBUS_MODULES_DIR"), "sample", &sample, &e), e);
    bus_open();
    /* What migrate grants on the database does not come along when a database is copied. */
    test_exec(bus.conn, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO "
                        "commandbus_owner', current_database()); END $$");
    snprintf(folder, sizeof folder, "%s/handlers/sample/sql", getenv("COMMANDBUS_SOURCE_DIR"));
    expect_ok(cb_migrate_set(bus.db, "sample", folder, &done, &e), e);
}

static void close_sample(void)
{
    bus_close();
    cb_set_free(sample);
}

TestSuite(record, .init = open_sample, .fini = close_sample);

/* Sends a Record to domain fx, claims it, runs it, and settles it with its effect. */
static cb_uuid record(const char *data, cb_settlement *out)
{
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) claim = NULL;
    OWNED(cb_context) ctx = NULL;
    cb_uuid id;
    cb_error e = { 0 };

    expect_ok(cb_send_command(bus.db,
                              &(cb_send){ .domain = "fx", .command_type = "Record", .data = data },
                              &id, &e),
              e);
    expect_ok(cb_receiver_open("fx", &(cb_receive_options){ .worker = "test" }, &receiver, &e), e);
    expect_ok(cb_receive(bus.db, receiver, 1, &claim, &e), e);
    cr_assert_eq(cb_claim_count(claim), 1);
    expect_ok(cb_context_open(cb_claim_at(claim, 0), NULL, NULL, &ctx, &e), e);
    cb_context_run(ctx, test_handler(sample, "Record"), 0, out);
    cr_assert_eq(cb_context_effects(ctx), 1);
    expect_ok(cb_settle_with_effects(bus.db, "test", out, ctx, 0, &e), e);
    out->result = out->error_code = out->error_message = NULL; /* borrowed from what ends here */
    return id;
}

/* WRK.14 */
Test(record, books_and_completes_the_command)
{
    cb_settlement out;

    cb_uuid id = record("{\"account\": \"ACC-1\", \"amount\": \"-12.50\"}", &out);

    cr_expect_eq(out.verdict, CB_SETTLED);
    expect_value(bus.conn, "ACC-1 -12.50",
                 "SELECT account || ' ' || amount FROM sample.ledger WHERE command_id = $1::uuid",
                 id.text);
    expect_value(bus.conn, "COMPLETED {\"amount\": \"-12.50\", \"account\": \"ACC-1\"}",
                 "SELECT status || ' ' || result::text FROM commandbus.command_metadata "
                 "WHERE command_id = $1::uuid",
                 id.text);
}

/* WRK.14 */
Test(record, that_the_ledger_refuses_completes_nothing)
{
    cb_settlement out;
    test_exec(bus.conn, "ALTER TABLE sample.ledger ADD CHECK (amount < 1000)");

    cb_uuid id = record("{\"account\": \"ACC-1\", \"amount\": \"1000.00\"}", &out);

    cr_expect_eq(out.verdict, CB_SETTLED);
    expect_number(bus.conn, 0, "SELECT count(*) FROM sample.ledger");
    expect_value(bus.conn, "IN_TROUBLESHOOTING_QUEUE EFFECT_FAILED",
                 "SELECT status || ' ' || error_code FROM commandbus.command_metadata "
                 "WHERE command_id = $1::uuid",
                 id.text);
}

Test(record, gives_the_role_of_workers_what_it_needs_and_no_more)
{
    expect_value(bus.conn, "t f f",
                 "SELECT concat_ws(' ', has_table_privilege('commandbus_worker', 'sample.ledger', "
                 "'INSERT'), has_table_privilege('commandbus_worker', 'sample.ledger', 'DELETE'), "
                 "has_schema_privilege('commandbus_sender', 'sample', 'USAGE'))");
}
