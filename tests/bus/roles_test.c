/* Who may do what: every function, table and column of the bus against a table of what is meant. */
#include "expect.h"
#include "fixture.h"

#include <stdio.h>

TestSuite(privileges, .init = bus_open, .fini = bus_close);

/* Whoever adds a function says here who may call it. "" is nobody but the owner. */
static const struct {
    const char *name, *callers;
} functions[] = {
    { "now", "sender worker operator monitor" },

    { "send", "sender worker" },
    { "send_many", "sender worker" },
    { "send_arrays", "sender worker" },
    { "create_batch", "sender worker" },
    { "create_batch_arrays", "sender worker" },
    { "start_process", "sender worker operator" },
    { "start_processes", "sender worker operator" },
    { "start_batch", "sender worker operator" },
    { "respond", "sender worker operator" },

    { "register_process_type", "worker" },
    { "deliver_replies", "worker" },
    { "deliver_former_replies", "worker" },
    { "claim_processes", "worker" },
    { "next_process_wake", "worker" },
    { "extend_processes", "worker" },
    { "release_unknown_processes", "worker" },
    { "read_processes", "worker operator" },
    { "running_processes", "worker operator" },

    { "receive", "worker" },
    { "hold_fence", "worker" },
    { "settle", "worker" },
    { "extend", "worker" },
    { "release_unknown", "worker" },
    { "close_batches", "worker operator" },
    { "heartbeat", "worker" },
    { "retire", "worker" },
    { "tidy_fleet", "worker" },
    { "set_fleet_limit", "worker" },
    { "queue_samples", "worker" },
    { "sleep_announce", "worker" },
    { "sleep_end", "worker" },
    { "sleep_pass_on", "worker" },
    { "register_domain", "worker operator" },
    { "restore_messages", "worker operator" },
    { "keep_messages", "worker" },
    { "restore_replies", "worker operator" },
    { "keep_replies", "worker" },
    { "purge", "worker operator" },

    { "queue_metrics", "worker operator monitor" },
    { "lost_messages", "worker operator monitor" },
    { "hidden_messages", "worker operator monitor" },
    { "fleet_domains", "operator monitor" },
    { "figure", "operator monitor" },
    { "domain_figures", "worker operator monitor" },
    { "process_problems", "operator monitor" },
    { "process_figures", "worker operator monitor" },
    { "step_status", "operator monitor" },
    { "reply_outcome", "operator monitor" },
    { "instant", "operator" },
    { "redacted", "operator" },
    { "changes", "operator" },

    { "tsq_retry", "operator" },
    { "tsq_cancel", "operator" },
    { "tsq_complete", "operator" },
    { "process_retry", "operator" },
    { "process_cancel", "operator" },
    { "process_complete", "operator" },

    { "settle_processes", "worker" },
    { "settle_process_arrays", "worker" },

    { "allow_response", "" },
    { "forbid_response", "" },

    { "archive_messages", "" },
    { "audit_decision", "" },
    { "awaited_command", "" },
    { "awaits_reply", "" },
    { "batch_has_open", "" },
    { "cancel_unreceived", "" },
    { "check_payload", "" },
    { "check_response", "" },
    { "fits_field", "" },
    { "check_responder", "" },
    { "check_room", "" },
    { "has_response", "" },
    { "check_reply_queue", "" },
    { "check_shared", "" },
    { "close_batch", "" },
    { "command_message", "" },
    { "command_problem", "" },
    { "create_queue", "" },
    { "create_queue_finish", "" },
    { "create_queue_functions", "" },
    { "create_queue_pop", "" },
    { "create_queue_put", "" },
    { "create_queue_put_one", "" },
    { "create_queue_switches", "" },
    { "create_queue_take", "" },
    { "domain_name_problem", "" },
    { "end_by_operator", "" },
    { "end_failed", "" },
    { "enqueue", "" },
    { "explain_unsettled", "" },
    { "explain_unsettled_items", "" },
    { "hold_batch", "" },
    { "in_tsq", "" },
    { "is_derived_id", "" },
    { "is_repeated", "" },
    { "is_too_deep", "" },
    { "is_uuid", "" },
    { "is_terminal", "" },
    { "known_domain", "" },
    { "known_process_type", "" },
    { "give_back_late", "" },
    { "free_places", "" },
    { "lay_places", "" },
    { "leave_commands", "" },
    { "live_leases", "" },
    { "login_has", "" },
    { "oldest_due", "" },
    { "moment", "" },
    { "move_messages", "" },
    { "name_duplicates", "" },
    { "new_id", "" },
    { "note_touch", "" },
    { "open_batch", "" },
    { "parked_process", "" },
    { "process_content", "" },
    { "measured_content", "" },
    { "json_bytes", "" },
    { "content_limit_of", "" },
    { "bytes_to_read", "" },
    { "finish_of", "" },
    { "put_commands", "" },
    { "put_into", "" },
    { "put_one_into", "" },
    { "queue_exists", "" },
    { "renew_queue_functions", "" },
    { "quoted", "" },
    { "reply_again", "" },
    { "reveal_messages", "" },
    { "take_of", "" },
    { "take_turn", "" },
    { "queue_sample", "" },
    { "put_replies", "" },
    { "read_replies", "" },
    { "reclaims_from", "" },
    { "refuse", "" },
    { "refuse_empty_batch", "" },
    { "refuse_isolation", "" },
    { "refuse_problem", "" },
    { "relay_places", "" },
    { "commands_in_progress", "" },
    { "replies_as_sent", "" },
    { "remember_silent", "" },
    { "reply_message", "" },
    { "request_decision", "" },
    { "send_for_processes", "" },
    { "give_replies", "" },
    { "settle_each", "" },
    { "sort_out_messages", "" },
    { "start_batches", "" },
    { "to_ms", "" },
    { "trim_places", "" },
    { "unread_replies", "" },
    { "wake_for_capacity", "" },
    { "wake", "" },
};

/* Who may read what: whole relations, or all but the columns named after "monitor -". */
static const struct {
    const char *name, *readers, *hidden_from_monitor;
} relations[] = {
    { "schema_version", "sender worker operator monitor", "" },
    { "domain", "operator monitor", "" },
    { "reply_queue", "operator monitor", "" },
    { "fleet_lease", "operator monitor", "" },
    { "fleet_place", "operator monitor", "" },
    { "sleeper", "operator monitor", "" },
    { "worker", "operator monitor", "" },
    { "fleet", "operator monitor", "" },
    { "command_metadata", "operator monitor", "data error_message headers result" },
    { "audit", "operator monitor", "details" },
    { "batch", "operator monitor", "custom_data" },
    { "batch_status", "operator monitor", "custom_data" },
    { "process_type", "operator monitor", "" },
    { "responder", "operator monitor", "" },
    { "process", "operator monitor", "error_message initial_state leaving state" },
    { "process_history", "operator monitor", "error_message opening owes patch result" },
    { "process_attempt", "operator monitor", "error_message result" },
    { "process_inbox", "operator monitor", "payload" },
    { "process_event", "operator monitor", "details" },
    { "process_audit", "operator monitor", "command_data details reply_data" },
    { "process_state_document", "operator", "" },
    { "clock", "", "" },
    { "uptime", "", "" },
    { "live_process", "", "" },
    { "missing_reply", "", "" },
    { "chore", "", "" },
    { "touched_queue", "", "" },
    { "process_attempt_id_seq", "", "" },
    { "process_event_id_seq", "", "" },
    { "audit_id_seq", "", "" },
};

static const char *const roles[] = { "sender", "worker", "operator", "monitor" };

static bool has_word(const char *words, const char *word)
{
    char padded[256], wanted[80];

    snprintf(padded, sizeof padded, " %s ", words);
    snprintf(wanted, sizeof wanted, " %s ", word);
    return strstr(padded, wanted) != NULL;
}

static PGresult *query_rows(const char *sql)
{
    PGresult *result = PQexec(bus.conn, sql);

    cr_assert_eq(PQresultStatus(result), PGRES_TUPLES_OK, "%s", PQerrorMessage(bus.conn));
    return result;
}

static const char *callers_of(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].callers;
    }
    cr_assert_fail("commandbus.%s is new: say in this test who may call it", name);
    return "";
}

/* BUS.14: least privilege */
Test(privileges, to_call_each_function_are_as_meant)
{
    PGresult *found =
        query_rows("SELECT p.proname, r.role, "
                   "has_function_privilege('commandbus_' || r.role, p.oid, 'EXECUTE') "
                   "FROM pg_proc p, unnest('{sender,worker,operator,monitor}'::text[]) "
                   "r(role) WHERE p.pronamespace = 'commandbus'::regnamespace "
                   "AND p.proname NOT LIKE '%.%'");

    for (int i = 0; i < PQntuples(found); i++) {
        const char *name = PQgetvalue(found, i, 0), *role = PQgetvalue(found, i, 1);
        bool may = *PQgetvalue(found, i, 2) == 't';
        cr_assert_eq(may, has_word(callers_of(name), role), "%s %s call %s", role,
                     may ? "may" : "may not", name);
    }
    cr_assert_eq((size_t)PQntuples(found), sizeof functions / sizeof *functions * 4,
                 "a function of this test is gone, or one has an overload");
    PQclear(found);
}

/* BUS.14: in the creating transaction, so also not for a moment */
Test(privileges, of_public_do_not_exist)
{
    expect_value(bus.conn, "",
                 "SELECT string_agg(p.proname, ' ') FROM pg_proc p, "
                 "aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a "
                 "WHERE p.pronamespace = 'commandbus'::regnamespace AND a.grantee = 0");
    expect_value(bus.conn, "",
                 "SELECT string_agg(c.relname, ' ') FROM pg_class c, aclexplode(c.relacl) a "
                 "WHERE c.relnamespace IN ('commandbus'::regnamespace, 'pgmq'::regnamespace) "
                 "AND a.grantee = 0");
    expect_value(bus.conn, "",
                 "SELECT string_agg(n.nspname, ' ') FROM pg_namespace n, aclexplode(n.nspacl) a "
                 "WHERE n.nspname IN ('commandbus', 'pgmq') AND a.grantee = 0");
}

/* RL.5: the limit is replicas × concurrent-messages, or leases counted; nobody hands out tokens. */
Test(privileges, of_token_buckets_do_not_exist)
{
    expect_number(
        bus.conn, 0,
        "SELECT count(*) FROM (SELECT relname FROM pg_class WHERE relnamespace = "
        "'commandbus'::regnamespace UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = "
        "'commandbus'::regnamespace UNION ALL SELECT attname FROM pg_attribute a JOIN pg_class c "
        "ON c.oid = a.attrelid WHERE c.relnamespace = 'commandbus'::regnamespace) n(name) "
        "WHERE name ~ 'bucket|token|rate_limit'");
}

/* Each queue has three functions of its own, one of commands five, made when the queue is. */
Test(privileges, to_call_a_queues_own_functions_are_granted_to_nobody)
{
    expect_number(
        bus.conn, 24,
        "SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'commandbus'::regnamespace "
        "AND p.proname LIKE '%.%'");
    expect_number(
        bus.conn, 0,
        "SELECT count(*) FROM pg_proc p, unnest('{sender,worker,operator,monitor}'::text[]) "
        "r(role) WHERE p.pronamespace = 'commandbus'::regnamespace "
        "AND p.proname LIKE '%.%' "
        "AND has_function_privilege('commandbus_' || r.role, p.oid, 'EXECUTE')");
}

/* A function of a later migration is born without EXECUTE for everybody. */
Test(privileges, of_public_on_a_future_function_do_not_exist)
{
    test_exec(bus.conn, "SET ROLE commandbus_owner;"
                        "CREATE FUNCTION commandbus.of_tomorrow() RETURNS integer "
                        "LANGUAGE sql AS 'SELECT 1';"
                        "RESET ROLE");

    expect_number(bus.conn, 0,
                  "SELECT count(*) FROM pg_proc p, "
                  "aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a "
                  "WHERE p.proname = 'of_tomorrow' AND a.grantee = 0");
}

static void expect_readable(const char *relation, const char *column, const char *role, bool may)
{
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
        if (strcmp(relations[i].name, relation) != 0)
            continue;
        bool meant =
            has_word(relations[i].readers, role) &&
            !(strcmp(role, "monitor") == 0 && has_word(relations[i].hidden_from_monitor, column));
        cr_assert_eq(may, meant, "%s %s read %s.%s", role, may ? "may" : "may not", relation,
                     column);
        return;
    }
    cr_assert_fail("commandbus.%s is new: say in this test who may read it", relation);
}

/* BUS.14 */
Test(privileges, to_read_each_column_are_as_meant)
{
    PGresult *found =
        query_rows("SELECT c.relname, a.attname, r.role, "
                   "has_column_privilege('commandbus_' || r.role, c.oid, a.attnum, 'SELECT') "
                   "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
                   "AND a.attnum > 0 AND NOT a.attisdropped, "
                   "unnest('{sender,worker,operator,monitor}'::text[]) r(role) "
                   "WHERE c.relnamespace = 'commandbus'::regnamespace "
                   "AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')");

    cr_assert_gt(PQntuples(found), 200);
    for (int i = 0; i < PQntuples(found); i++)
        expect_readable(PQgetvalue(found, i, 0), PQgetvalue(found, i, 1), PQgetvalue(found, i, 2),
                        *PQgetvalue(found, i, 3) == 't');
    PQclear(found);
}

/* BUS.14: what is written is written by definer functions alone */
Test(privileges, to_write_a_table_are_nobodys)
{
    expect_value(bus.conn, "",
                 "SELECT string_agg(format('%s: %s', r.role, c.oid::regclass), ', ') "
                 "FROM pg_class c, unnest('{sender,worker,operator,monitor}'::text[]) r(role) "
                 "WHERE c.relnamespace IN ('commandbus'::regnamespace, 'pgmq'::regnamespace) "
                 "AND c.relkind IN ('r', 'p', 'v') AND (has_table_privilege('commandbus_' || "
                 "r.role, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') "
                 "OR has_any_column_privilege('commandbus_' || r.role, c.oid, "
                 "'INSERT, UPDATE, REFERENCES'))");
    expect_value(bus.conn, "",
                 "SELECT string_agg(format('%s: %s', r.role, c.oid::regclass), ', ') "
                 "FROM pg_class c, unnest('{sender,worker,operator,monitor}'::text[]) r(role) "
                 "WHERE c.relnamespace IN ('commandbus'::regnamespace, 'pgmq'::regnamespace) AND "
                 "c.relkind = 'S' AND has_sequence_privilege('commandbus_' || r.role, c.oid, "
                 "'USAGE, UPDATE')");
    for (size_t i = 0; i < 4; i++)
        expect_value(bus.conn, "f",
                     "SELECT has_schema_privilege('commandbus_' || $1, 'commandbus', 'CREATE') OR "
                     "has_schema_privilege('commandbus_' || $1, 'pgmq', 'CREATE')",
                     roles[i]);
}

/* The messages hold what the tables hide. */
Test(privileges, to_read_messages_are_the_operators)
{
    expect_value(bus.conn, "operator",
                 "SELECT string_agg(DISTINCT r.role, ' ') FROM pg_class c, "
                 "unnest('{sender,worker,operator,monitor}'::text[]) r(role) "
                 "WHERE c.relnamespace = 'pgmq'::regnamespace AND c.relname ~ '^[qa]_' "
                 "AND c.relkind = 'r' AND (has_column_privilege('commandbus_' || r.role, c.oid, "
                 "'message', 'SELECT') OR has_column_privilege('commandbus_' || r.role, c.oid, "
                 "'headers', 'SELECT'))");
}

/* BUS.14, DESIGN 3 */
Test(privileges, of_definer_functions_are_the_owners_and_their_path_is_fixed)
{
    expect_value(bus.conn, "",
                 "SELECT string_agg(proname, ' ') FROM pg_proc WHERE prosecdef AND pronamespace = "
                 "'commandbus'::regnamespace AND NOT coalesce(proconfig, '{}') @> "
                 "'{\"search_path=pg_catalog, pg_temp\"}'");
    expect_value(bus.conn, "commandbus_owner",
                 "SELECT string_agg(DISTINCT pg_get_userbyid(proowner), ' ') FROM pg_proc "
                 "WHERE pronamespace = 'commandbus'::regnamespace");
    expect_value(bus.conn, "f f f f",
                 "SELECT concat_ws(' ', rolsuper, rolcreaterole, rolcreatedb, rolcanlogin) "
                 "FROM pg_roles WHERE rolname = 'commandbus_owner'");
}
