/* Queues exist because a domain was registered, never by accident. */
#include "expect.h"
#include "fixture.h"
#include "parallel.h"

TestSuite(domain, .init = bus_open, .fini = bus_close);

/* BUS.2 */
Test(domain, registered_has_its_two_queues_and_takes_commands)
{
    cb_error e = { 0 };

    expect_ok(cb_domain_register(bus.db, "ledger_2", NULL, &e), e);

    expect_value(bus.conn, "ledger_2__commands ledger_2__replies",
                 "SELECT string_agg(queue_name, ' ' ORDER BY queue_name) FROM pgmq.list_queues() "
                 "WHERE queue_name LIKE 'ledger%'");
    expect_ok(cb_send_command(bus.db,
                              &(cb_send){ .domain = "ledger_2",
                                          .command_type = "Book",
                                          .reply_to = "ledger_2__replies" },
                              NULL, &e),
              e);
}

/* BUS.2 */
Test(domain, registered_twice_is_as_registered_once)
{
    cb_error e = { 0 };
    expect_ok(cb_domain_register(bus.db, "ledger", "ledger_answers", &e), e);
    test_exec(bus.conn, "SELECT commandbus.send('ledger', 'Book')");
    char *before = bus_contents();

    expect_ok(cb_domain_register(bus.db, "ledger", "ledger_answers", &e), e);
    expect_ok(cb_domain_register(bus.db, "ledger", NULL, &e), e);

    expect_unchanged(before, bus_contents());
}

typedef struct {
    cb_db *db;
    bool fine;
    cb_error e;
} client;

static void register_one(size_t i, void *arg)
{
    client *c = (client *)arg + i;

    c->fine = cb_domain_register(c->db, "ledger", "ledger_answers", &c->e);
}

/* BUS.2 */
Test(domain, registered_from_eight_connections_at_once_is_there_once)
{
    client clients[8] = { 0 };
    for (int i = 0; i < 8; i++)
        clients[i].db = test_bus_open(bus.conninfo);

    parallel_run(8, register_one, clients);

    for (int i = 0; i < 8; i++) {
        expect_ok(clients[i].fine, clients[i].e);
        cb_db_free(clients[i].db);
    }
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.domain WHERE domain = 'ledger'");
    expect_number(bus.conn, 3, "SELECT count(*) FROM pgmq.meta WHERE queue_name LIKE 'ledger%'");
}

/* BUS.2: somebody dropped the queue. What it gives out next must not be taken for what it gave
 * before */
Test(domain, registered_again_after_its_queue_was_dropped_gives_out_no_message_id_twice)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "SELECT commandbus.send('fx', 'BookFx') FROM generate_series(1, 3);"
                        "SELECT pgmq.drop_queue('fx__commands')");

    expect_ok(cb_domain_register(bus.db, "fx", NULL, &e), e);
    test_exec(bus.conn, "SELECT commandbus.send('fx', 'BookFx') FROM generate_series(1, 3)");

    expect_number(bus.conn, 6, "SELECT count(DISTINCT msg_id) FROM commandbus.command_metadata");
}

/* BUS.2: what finds the functions of a queue by its name has no branch for ledger then */
Test(domain, registered_in_a_snapshot_of_before_another_one_keeps_no_commands_from_that)
{
    static const char settle[] =
        "SELECT s.verdicts[1] FROM commandbus.receive('ledger', 'w', 1) r, commandbus.settle("
        "'ledger', 'w', ARRAY[r.command_id], ARRAY[r.lease_no], ARRAY['SUCCESS']) s";
    PGconn *other = test_pq_open(bus.conninfo);
    test_exec(other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM commandbus.domain");
    test_exec(bus.conn, "SELECT commandbus.register_domain('ledger')");
    test_exec(other, "SELECT commandbus.register_domain('cash'); COMMIT");
    expect_value(bus.conn, "put_one_into",
                 "SELECT string_agg(proname, ' ') FROM pg_proc "
                 "WHERE prosrc LIKE '%cash\\_\\_commands.put\\_one%' "
                 "AND prosrc NOT LIKE '%ledger%'");

    test_exec(bus.conn, "SELECT commandbus.send('ledger', 'Book', reply_to => 'ledger__replies')");

    expect_value(bus.conn, "SETTLED", settle);
    expect_number(bus.conn, 1, "SELECT count(*) FROM pgmq.q_ledger__replies");
    PQfinish(other);
}

#define TEN "abcdefghij"

/* BUS.2 */
Test(domain, against_the_rules_of_names_is_refused_and_creates_nothing)
{
    static const char *const names[] = {
        "",
        "Fx",
        "fX",
        "1fx",
        "_fx",
        "f__x",
        "fx_",
        "f-x",
        "f x",
        "fx;",
        "f\"x",
        "f'x'",
        "fx\n",
        "\nfx",
        "føx",
        "fx__replies",
        TEN TEN TEN "abcdefgh",
        "fx%s%n",
    };
    cb_error e = { 0 };
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect_error(CB_INVALID_NAME, cb_domain_register(bus.db, names[i], NULL, &e), e);
        cr_assert(*e.hint, "no hint for '%s'", names[i]);
    }
    cr_assert_not(cb_domain_register(bus.db, NULL, NULL, &e));
    expect_sqlstate(bus.conn, "CB010", "SELECT commandbus.register_domain(NULL)");

    expect_unchanged(before, bus_contents());
}

/* BUS.2: 37 characters and '__commands' are PGMQ's 47 */
Test(domain, with_the_longest_possible_name_works)
{
    const char *longest = TEN TEN TEN "abcdefg";
    cb_error e = { 0 };

    expect_ok(cb_domain_register(bus.db, longest, NULL, &e), e);
    expect_ok(
        cb_send_command(bus.db, &(cb_send){ .domain = longest, .command_type = "Book" }, NULL, &e),
        e);

    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.receive($1, 'w', 1)", longest);
}

/* BUS.2 */
Test(domain, that_nobody_registered_takes_no_command_and_is_not_created_by_it)
{
    static const char *const names[] = { "fy", "FX", "", "fx__commands", "pgmq.q_fx", "fx'; --" };
    cb_error e = { 0 };
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cb_send command = { .domain = names[i], .command_type = "BookFx" };
        expect_error(CB_UNKNOWN_DOMAIN, cb_send_command(bus.db, &command, NULL, &e), e);
        cr_assert(strstr(e.hint, "commandbus queue"), "%s", e.hint);
        expect_error(CB_UNKNOWN_DOMAIN, cb_send_many(bus.db, &command, 1, NULL, NULL, NULL, &e), e);
        expect_error(CB_UNKNOWN_DOMAIN,
                     cb_batch_create(bus.db, &(cb_batch_options){ .domain = names[i] }, &command, 1,
                                     NULL, &e),
                     e);
    }
    expect_sqlstate(bus.conn, "CB008", "SELECT commandbus.send(NULL, 'BookFx')");
    expect_sqlstate(bus.conn, "CB008",
                    "SELECT commandbus.send_many('[{\"command_type\": \"BookFx\"}]')");
    expect_sqlstate(bus.conn, "CB008", "SELECT commandbus.receive('fy', 'w', 1)");

    expect_unchanged(before, bus_contents());
}

TestSuite(reply_queue, .init = bus_open, .fini = bus_close);

/* BUS.2, CONTRACT */
Test(reply_queue, must_be_registered_and_no_commands_queue)
{
    static const char *const queues[] = { "fx__commands", "risk__commands", "fy__replies", "",
                                          "FX__REPLIES",  "fx__replies " };
    cb_error e = { 0 };
    test_exec(bus.conn, "SELECT pgmq.create('not_ours')");
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
        cb_send command = { .domain = "fx", .command_type = "BookFx", .reply_to = queues[i] };
        expect_error(CB_INVALID_NAME, cb_send_command(bus.db, &command, NULL, &e), e);
        cr_assert(strstr(e.hint, "<domain>__replies"), "%s", e.hint);
        expect_error(CB_INVALID_NAME, cb_send_many(bus.db, &command, 1, NULL, NULL, NULL, &e), e);
        command.reply_to = NULL;
        expect_error(CB_INVALID_NAME,
                     cb_batch_create(bus.db,
                                     &(cb_batch_options){ .domain = "fx", .reply_to = queues[i] },
                                     &command, 1, NULL, &e),
                     e);
    }
    expect_sqlstate(bus.conn, "CB010",
                    "SELECT commandbus.send('fx', 'BookFx', reply_to => 'not_ours')");

    expect_unchanged(before, bus_contents());
}

/* CONTRACT: a process type may name another reply queue */
Test(reply_queue, of_another_name_can_be_registered_with_a_domain)
{
    cb_error e = { 0 };

    expect_ok(cb_domain_register(bus.db, "fx", "statements", &e), e);
    expect_ok(cb_send_command(
                  bus.db,
                  &(cb_send){ .domain = "fx", .command_type = "BookFx", .reply_to = "statements" },
                  NULL, &e),
              e);

    expect_value(bus.conn, "fx",
                 "SELECT domain FROM commandbus.reply_queue WHERE queue_name = 'statements'");
}

/* BUS.2 */
Test(reply_queue, against_the_rules_of_names_is_refused_and_creates_nothing)
{
    static const char *const names[] = {
        "",
        "Answers",
        "1st",
        "a-b",
        "a b",
        "a'b",
        "a\"",
        "x__commands",
        "fy__commands",
        "a\n",
        TEN TEN TEN TEN "abcdefgh",
    };
    cb_error e = { 0 };
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_error(CB_INVALID_NAME, cb_domain_register(bus.db, "ledger", names[i], &e), e);

    expect_unchanged(before, bus_contents());
}
