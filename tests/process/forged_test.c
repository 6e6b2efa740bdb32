/* A login with nothing but commandbus_sender, who knows every id there is and uses every function
 * that his role has: no process goes anywhere by it. DESIGN 8.8, STP.21. */
#include "login.h"
#include "tour.h"

#include <stdio.h>

static stage s;
static cb_uuid victim;
static login forger;

/* The victim waits for the reply to bookRisk, with bookFx to come, then for the response "go". */
static void open_forger(void)
{
    s = tour_open(&tour_type);
    victim = tour_at_risk(&s, "{\"wait_at_last\": true}");
    forger = login_open("commandbus_sender");
}

static void close_forger(void)
{
    login_close(&forger);
    stage_close(&s);
}

TestSuite(forged, .init = open_forger, .fini = close_forger);

/* The ids of the command that is out and of the one that comes next, in every version that a sender
 * may think of. */
#define OUT   "command/bookRisk/1"
#define NEXT  "command/bookFx/1"
#define AGAIN "command/bookRisk/2"

/* "Echo" would answer with what it was sent: here any command of domain payments is served so. */
#define ANSWER      "{\"id\": 666}"
#define IN_HIS_NAME ", correlation_id => '<process>', reply_to => 'payments__replies'"
#define WIRE                                                                            \
    "{\"domain\": \"payments\", \"command_type\": \"Echo\", \"command_id\": \"<id>\", " \
    "\"correlation_id\": \"<process>\", \"data\": " ANSWER                              \
    ", \"reply_to\": \"payments__replies\"}"

static const struct {
    const char *function, *sql, *sqlstate;
} attacks[] = {
    { "now", "SELECT commandbus.now()", "00000" },

    /* An answer for risk by whoever serves another domain. */
    { "send", "SELECT commandbus.send('payments', 'Echo', '" ANSWER "', '<id>'" IN_HIS_NAME ")",
      "CB007" },
    { "send", "SELECT commandbus.send('payments', 'Echo', '" ANSWER "'" IN_HIS_NAME ")", "CB007" },
    { "send",
      "SELECT commandbus.send('payments', 'Echo', '" ANSWER
      "', '<id>', '<process>', 'fx__replies')",
      "CB011" },
    { "send", "SELECT commandbus.send('payments', 'Echo', '" ANSWER "', '<id>', '<process>')",
      "CB011" },
    /* First come: where the next step's command would go. */
    { "send", "SELECT commandbus.send('fx', 'BookFx', '" ANSWER "', '<id>')", "CB011" },
    { "send", "SELECT commandbus.send('risk', 'BookRisk', '" ANSWER "', '<id>')", "CB011" },
    { "send",
      "SELECT commandbus.send('payments', 'Echo', '" ANSWER "', correlation_id => '<process>')",
      "00000" },
    { "send_many", "SELECT commandbus.send_many('[" WIRE "]')", "CB011" },
    { "send_many",
      "SELECT commandbus.send_many(jsonb_build_array('" WIRE "'::jsonb - 'command_id'))", "CB007" },
    { "send_many",
      "SELECT commandbus.send_many(jsonb_build_array('" WIRE "'::jsonb - 'reply_to' || "
      "'{\"domain\": \"fx\"}'))",
      "CB011" },
    { "send_arrays",
      "SELECT commandbus.send_arrays('{payments}', '{Echo}', ARRAY['" ANSWER
      "'::jsonb], '{<id>}', '{<process>}', '{fx__replies}')",
      "CB011" },
    { "send_arrays",
      "SELECT commandbus.send_arrays('{payments}', '{Echo}', ARRAY['" ANSWER
      "'::jsonb], NULL, '{<process>}', '{payments__replies}')",
      "CB007" },
    { "send_arrays",
      "SELECT commandbus.send_arrays('{fx}', '{BookFx}', ARRAY['" ANSWER "'::jsonb], '{<id>}')",
      "CB011" },
    { "create_batch_arrays",
      "SELECT commandbus.create_batch_arrays('payments', NULL, NULL, NULL, NULL, '{Echo}', "
      "command_ids => '{<id>}')",
      "CB011" },
    { "create_batch_arrays",
      "SELECT commandbus.create_batch_arrays('payments', NULL, NULL, NULL, NULL, '{Echo}', "
      "reply_tos => '{payments__replies}')",
      "CB007" },
    { "create_batch_arrays",
      "SELECT commandbus.create_batch_arrays('payments', NULL, NULL, 'payments__replies', NULL, "
      "'{Echo}')",
      "CB007" },
    { "create_batch", "SELECT commandbus.create_batch('payments', commands => '[" WIRE "]')",
      "CB011" },
    { "create_batch",
      "SELECT commandbus.create_batch('payments', commands => jsonb_build_array('" WIRE
      "'::jsonb - 'command_id'))",
      "CB007" },
    { "create_batch",
      "SELECT commandbus.create_batch('payments', commands => '[{\"command_type\": \"Echo\"}]', "
      "reply_to => 'payments__replies', batch_id => '<process>')",
      "CB007" },

    { "start_process", "SELECT commandbus.start_process('Tour', '{\"gone\": true}', '<process>')",
      "CB007" },
    { "start_process",
      "SELECT commandbus.start_process('Tour', '{}', '<process>', leased_by => 'stage')", "CB007" },
    { "start_processes",
      "SELECT commandbus.start_processes('Tour', '[{}]', batch_id => '<process>')", "CB004" },
    { "start_batch",
      "SELECT commandbus.start_batch('Tour', '[{}]', reply_to => 'payments__replies')", "CB007" },

    { "respond", "SELECT commandbus.respond('<process>', 'go')", "CB007" },
    { "respond", "SELECT commandbus.respond('<process>', 'note', '{\"word\": \"forged\"}')",
      "CB007" },
    { "respond", "SELECT commandbus.respond('<process>', 'REPLY', '" WIRE "')", "CB007" },
    { "respond", "SET ROLE commandbus_sender; SELECT commandbus.respond('<process>', 'go')",
      "CB007" },
};

/* `from` with both placeholders filled in. */
static void fill_in(char *to, size_t size, const char *from, const char *id)
{
    FILE *out = fmemopen(to, size, "w");

    for (const char *c = from; *c; c++) {
        const char *value = strncmp(c, "<id>", 4) == 0        ? id
                            : strncmp(c, "<process>", 9) == 0 ? victim.text
                                                              : NULL;
        if (value) {
            fputs(value, out);
            c += value == id ? 3 : 8;
        } else {
            fputc(*c, out);
        }
    }
    fputc('\0', out);
    fclose(out);
}

/* A worker answers whatever waits in domain payments, where no process sends anything, as Echo
 * would. */
static void serve_forged(void)
{
    while (test_number(bus.conn, "SELECT count(*) FROM pgmq.q_payments__commands WHERE vt <= now()",
                       NULL))
        stage_serve(&s, "payments", CB_SUCCESS, ANSWER, NULL);
}

static char *picture(void)
{
    return test_value(
        bus.conn,
        "SELECT p.status || ' at ' || coalesce(p.current_wait, p.current_step, '') || ', ' || p.inbox_seq || ' arrived, ' || "
        "p.settle_no || ' runs, ' || (SELECT count(*) FROM commandbus.process_history h WHERE "
        "h.process_id = p.process_id) || ' records, ' || state::text FROM commandbus.process p "
        "WHERE process_id = $1",
        victim.text, NULL);
}

/* Every attack that has a place for an id with this one. */
static void attack_with(const char *id, bool is_derived)
{
    char sql[4096];

    for (size_t i = 0; i < CB_COUNT(attacks); i++) {
        char *before = picture();
        fill_in(sql, sizeof sql, attacks[i].sql, id);
        const char *found = test_sqlstate(forger.conn, sql);
        PQclear(PQexec(forger.conn, "RESET ROLE"));
        /* An id that belongs to no process may be used by anybody. */
        if (is_derived || strcmp(attacks[i].sqlstate, "CB011") != 0)
            cr_expect_str_eq(found, attacks[i].sqlstate, "%s: %s", found, sql);
        serve_forged();
        stage_go(&s);
        char *after = picture();
        cr_expect_str_eq(after, before, "by %s:\n%s\n%s", sql, before, after);
        free(before);
        free(after);
    }
}

static void attack(void)
{
    static const char *const names[] = { OUT, NEXT, AGAIN, "compensate/bookRisk/1" };

    for (size_t i = 0; i < CB_COUNT(names); i++) {
        cb_uuid id = cb_uuid_from_name(&victim, names[i]);
        attack_with(id.text, false);
        id.text[14] = '8';
        attack_with(id.text, true);
    }
}

/* A function that senders get must be tried here. */
Test(forged, attacks_use_every_function_that_senders_have)
{
    PGresult *found =
        PQexec(forger.conn, "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = "
                            "'commandbus'::regnamespace AND has_function_privilege(p.oid, "
                            "'EXECUTE')");

    cr_assert_gt(PQntuples(found), 5);
    for (int row = 0; row < PQntuples(found); row++) {
        size_t i = 0;
        while (i < CB_COUNT(attacks) && strcmp(attacks[i].function, PQgetvalue(found, row, 0)) != 0)
            i++;
        cr_expect_lt(i, CB_COUNT(attacks),
                     "senders may call commandbus.%s: say in this test how "
                     "it could move a process of somebody else",
                     PQgetvalue(found, row, 0));
    }
    PQclear(found);
}

/* Serves the victim's own command; what a forger has put before it in the queue, too. */
static void book_own(const char *domain, const char *name)
{
    cb_uuid own = cb_uuid_derived(&victim, name);

    while (strcmp(tour_book(&s, domain).text, own.text) != 0)
        ;
    stage_go(&s);
}

Test(forged, attacks_move_no_process_and_its_own_commands_still_do)
{
    attack();
    book_own("risk", OUT);
    expect_status(&s, "WAITING_FOR_ASYNC", victim);
    expect_state(&s, "7", victim, "risk_id");

    attack();
    book_own("fx", NEXT);
    expect_state(&s, "8", victim, "fx_id");

    attack();
    stage_respond(&s, victim, "go", "{}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", victim);
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.process_event WHERE event = 'LATE_REPLY'");
}

/* Sent to a queue that was anybody's, before a process type took it: the reply is a dead letter. */
Test(forged, replies_to_a_queue_that_became_the_processes_are_archived)
{
    cb_process_kind later = {
        .process_type = "Later", .domain = "payments", .version = 1, .reply_queue = "fx__replies"
    };
    char sql[1024];
    cb_error e;
    snprintf(
        sql, sizeof sql,
        "SELECT commandbus.send('payments', 'Echo', '{}', correlation_id => '%s', reply_to => 'fx__replies')",
        victim.text);
    test_exec(forger.conn, sql);

    cr_assert(cb_process_register(bus.db, &later, 1, &e), "%s", e.message);
    serve_forged();
    expect_value(bus.conn, "0 0 1",
                 "SELECT concat_ws(' ', delivered, late, dead_lettered) FROM "
                 "commandbus.deliver_replies('fx__replies', 'w', grace_seconds => 0)");

    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    expect_value(
        bus.conn, "the process has no such command",
        "SELECT details ->> 'reason' FROM commandbus.audit WHERE event_type = 'REPLY_DEAD_LETTERED'");
    cr_expect_str_eq(test_sqlstate(forger.conn, sql), "CB007");
}

static void allow(const char *call, const char *response, const char *role)
{
    char sql[256];

    snprintf(sql, sizeof sql, "SELECT commandbus.%s('Tour', '%s', '%s')", call, response, role);
    test_exec(bus.conn, sql);
}

static const char *respond_as(const login *l, const char *name)
{
    char sql[256];

    snprintf(sql, sizeof sql, "SELECT commandbus.respond('%s', '%s', '{\"word\": \"w\"}')",
             victim.text, name);
    return test_sqlstate(l->conn, sql);
}

Test(forged, responses_are_taken_from_those_allowed_to_bring_them_and_from_operators)
{
    login ann = login_open("commandbus_operator"), worker = login_open("commandbus_worker"),
          other = login_open("commandbus_sender");

    allow("allow_response", "note", forger.name);
    cr_expect_str_eq(respond_as(&forger, "note"), "00000");
    cr_expect_str_eq(respond_as(&forger, "go"), "CB007");
    cr_expect_str_eq(respond_as(&other, "note"), "CB007");
    cr_expect_str_eq(respond_as(&ann, "go"), "00000");
    cr_expect_str_eq(respond_as(&worker, "go"), "00000");

    allow("allow_response", "*", forger.name);
    cr_expect_str_eq(respond_as(&forger, "go"), "00000");
    allow("forbid_response", "*", forger.name);
    allow("forbid_response", "note", forger.name);
    cr_expect_str_eq(respond_as(&forger, "note"), "CB007");

    cr_expect_str_eq(
        test_sqlstate(forger.conn, "SELECT commandbus.allow_response('Tour', 'go', current_user)"),
        "42501");
    cr_expect_str_eq(
        test_sqlstate(ann.conn, "SELECT commandbus.allow_response('Tour', 'go', current_user)"),
        "42501");
    login_close(&other);
    login_close(&worker);
    login_close(&ann);
}

/* A right is a role's: it follows a rename, and goes with the role. */
Test(forged, responses_of_a_role_that_is_renamed_or_dropped_break_nothing)
{
    char sql[512], role[80], renamed[80];
    snprintf(role, sizeof role, "%s_of", forger.name);
    snprintf(renamed, sizeof renamed, "%s_as", forger.name);
    snprintf(sql, sizeof sql, "CREATE ROLE %s; GRANT %s TO %s", role, role, forger.name);
    test_exec(bus.conn, sql);
    allow("allow_response", "note", role);
    cr_expect_str_eq(respond_as(&forger, "note"), "00000");

    snprintf(sql, sizeof sql, "ALTER ROLE %s RENAME TO %s", role, renamed);
    test_exec(bus.conn, sql);
    cr_expect_str_eq(respond_as(&forger, "note"), "00000");

    snprintf(sql, sizeof sql, "DROP ROLE %s", renamed);
    test_exec(bus.conn, sql);
    cr_expect_str_eq(respond_as(&forger, "note"), "CB007");
    test_exec(bus.conn, "SELECT * FROM commandbus.responder");
    allow("allow_response", "go", forger.name);
    expect_value(bus.conn, "go", "SELECT string_agg(response, ' ') FROM commandbus.responder");
    cr_expect_str_eq(respond_as(&forger, "go"), "00000");
}

/* The refusal says what an administrator runs. */
Test(forged, responses_are_refused_with_what_to_do)
{
    char sql[256], expected[256];
    snprintf(sql, sizeof sql, "SELECT commandbus.respond('%s', 'go')", victim.text);

    PGresult *refused = PQexec(forger.conn, sql);
    snprintf(expected, sizeof expected, "commandbus responder allow %s Tour 'go'", forger.name);
    cr_expect(strstr(PQresultErrorField(refused, PG_DIAG_MESSAGE_HINT), expected), "%s",
              PQresultErrorMessage(refused));
    snprintf(expected, sizeof expected, "SELECT commandbus.allow_response('Tour', 'go', '%s')",
             forger.name);
    cr_expect(strstr(PQresultErrorField(refused, PG_DIAG_MESSAGE_HINT), expected), "%s",
              PQresultErrorMessage(refused));
    PQclear(refused);
}
