/* What people see of a manager: the whole story, without what its type redacts; and those that are
 * stuck. */
#include <stdio.h>

#include "order.h"

#define CARD "4000-1234"

/* What the CLI says about a process. The caller frees it. */
static char *shown(cb_uuid id, const char *option)
{
    const char *cli = getenv("COMMANDBUS_BIN");
    char *command = NULL, *text = NULL;
    size_t size = 0;

    cr_assert(cli, "COMMANDBUS_BIN names the CLI");
    cr_assert(asprintf(&command, "'%s' --url \"%s\" %s process show %s", cli, bus.conninfo, option,
                       id.text) > 0);
    FILE *out = open_memstream(&text, &size), *in = popen(command, "r");
    cr_assert(in && out);
    for (int c; (c = fgetc(in)) != EOF;)
        fputc(c, out);
    fclose(out);
    cr_assert_eq(pclose(in), 0, "%s: %s", command, text);
    free(command);
    return text;
}

static void expect_hidden(const char *text, const char *where)
{
    cr_expect_null(strstr(text, CARD), "%s shows it: %s", where, text);
    cr_expect(strstr(text, "***"), "%s does not show that it hides something: %s", where, text);
}

static void expect_hidden_by(cb_uuid id, const char *view)
{
    char *sql = NULL;

    cr_assert(asprintf(&sql,
                       "SELECT string_agg(v::text, '|') FROM commandbus.%s v WHERE "
                       "process_id = $1",
                       view) > 0);
    char *text = test_value(bus.conn, sql, id.text, NULL);
    expect_hidden(text, view);
    free(text);
    free(sql);
}

Test(manager_audit, shows_what_was_sent_and_what_came_back) /* CONTRACT process_audit */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_charge(&s);

    expect_value(bus.conn,
                 "PROCESS_CREATED; create_state STEP_COMPLETED; reserve COMMAND_COMPLETED BookRisk "
                 "{\"id\": 0, \"card\": \"***\"} SUCCESS {\"id\": 7}; charge COMMAND_WAITING "
                 "BookFx {\"id\": 0, \"card\": \"***\"}",
                 "SELECT string_agg(concat_ws(' ', step_name, event, command_type, command_data, "
                 "reply_outcome, reply_data), '; ' ORDER BY ordinal) FROM commandbus.process_audit "
                 "WHERE process_id = $1 AND ordinal IS NOT NULL",
                 id.text);
    expect_value(bus.conn, "t t",
                 "SELECT concat_ws(' ', sent_at <= received_at, command_id IS NOT NULL) FROM "
                 "commandbus.process_audit WHERE process_id = $1 AND step_name = 'reserve'",
                 id.text);
    stage_close(&s);
}

Test(manager_audit, a_redacted_field_is_nowhere_however_deep) /* PM.2, CONTRACT: redacted */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"card\":\"" CARD "\"}");
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS,
                "{\"id\":7,\"more\":[1,{\"deep\":{\"card\":\"" CARD "\"}}]}", NULL);
    stage_go(&s);
    /* As when no worker has said yet what the type takes: whatever comes is kept. */
    test_exec(bus.conn, "UPDATE commandbus.process_type SET responses = NULL");
    stage_respond(&s, id, "approval", "{\"ok\":true,\"card\":{\"number\":\"" CARD "\"}}");
    stage_go(&s);
    stage_respond(&s, id, "approval", "{\"ok\":true,\"card\":[\"" CARD "\"]}"); /* in the inbox */

    char *text = shown(id, ""), *json = shown(id, "--json");
    expect_hidden(text, "process show");
    expect_hidden(json, "process show --json");
    cr_expect(strstr(json, "\"deep\""), "the rest is there: %s", json);
    expect_hidden_by(id, "process_audit");
    expect_hidden_by(id, "process_state_document");
    expect_state(&s, CARD, id, "card"); /* the process itself has it */
    free(text);
    free(json);
    stage_close(&s);
}

Test(manager_audit, a_redacted_field_is_not_in_replies_that_came_late) /* CONTRACT: redacted */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{}");
    stage_go(&s);
    cb_uuid command;
    BUS_UNHEARD(command =
                    stage_serve(&s, "risk", CB_SUCCESS, "{\"id\":7,\"card\":\"" CARD "\"}", NULL));
    char *queue = test_value(bus.conn, "SELECT reply_queue FROM commandbus.process", NULL);
    char *copy = NULL, *again = NULL;
    cr_assert(asprintf(&copy, "CREATE TEMP TABLE twin AS SELECT message FROM pgmq.q_%s", queue) >
              0);
    cr_assert(asprintf(&again, "SELECT pgmq.send('%s', message) FROM twin", queue) > 0);
    test_exec(bus.conn, copy);
    stage_go(&s);

    test_exec(bus.conn, again);
    stage_go(&s);

    expect_value(bus.conn, "{\"id\": 7, \"card\": \"***\"}",
                 "SELECT reply_data FROM commandbus.process_audit WHERE command_id = $1 AND "
                 "event = 'LATE_REPLY'",
                 command.text);
    expect_hidden_by(id, "process_audit");
    char *json = shown(id, "--json");
    expect_hidden(json, "process show --json");
    free(json);
    free(again);
    free(copy);
    free(queue);
    stage_close(&s);
}

Test(manager_audit, show_describes_a_manager_like_any_process) /* issue: reads the same */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{}");
    stage_go(&s);
    order_book(&s, "risk", 7);
    stage_respond(&s, id, "approval", "{\"ok\":true}");
    stage_go(&s);

    char *text = shown(id, "");
    static const char *const parts[] = { "WAITING_FOR_REPLY: it waits for the reply to its command",
                                         "waits for  charge",
                                         "can undo   reserve (risk/ReleaseRisk)",
                                         "STEP_BASED",
                                         "COMMAND      reserve",
                                         "got approval",
                                         "fx/BookFx" };
    for (size_t i = 0; i < CB_COUNT(parts); i++)
        cr_expect(strstr(text, parts[i]), "'%s' is not in %s", parts[i], text);
    free(text);
    stage_close(&s);
}

Test(manager_audit, what_a_newer_version_hides_an_older_worker_does_not_show_again)
{
    static const char *const also[] = { "note", NULL };
    cb_process_type older = order_type, newer = order_type, same = order_type;
    const cb_process_type *one = &older;
    stage s = order_open(&older);

    newer.version = same.version = 2;
    newer.redact = also;
    static const char hidden[] = "SELECT array_to_string(redact, ' ') FROM commandbus.process_type";
    one = &newer;
    stage_release(&s, &one, 1, NULL, 0);
    expect_value(bus.conn, "note", hidden);
    older.reply_queue = "old__replies"; /* so that there is something to write */
    one = &older;
    stage_release(&s, &one, 1, NULL, 0);
    expect_value(bus.conn, "note", hidden);
    one = &same;
    stage_release(&s, &one, 1, NULL, 0);
    expect_value(bus.conn, "card note", hidden);
    stage_close(&s);
}

/* ---- those that are stuck ---- */

static char *problems(void)
{
    return test_value(
        bus.conn,
        "SELECT coalesce(string_agg(concat_ws(' ', problem, process_type, processes), "
        "'; '), '') FROM commandbus.process_problems() WHERE problem = 'LONG_REPLY'",
        NULL);
}

#define expect_problems(s, expected)          \
    do {                                      \
        char *found_ = problems();            \
        cr_expect_str_eq(found_, (expected)); \
        free(found_);                         \
    } while (0)

Test(manager_audit, one_that_waits_too_long_for_a_reply_is_seen_though_it_has_no_timer) /* PM.6 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true}");
    stage_go(&s);
    expect_process("", id, "wake_at");

    stage_wait(&s, 3500);
    expect_problems(&s, "");
    stage_wait(&s, 200);
    expect_problems(&s, "LONG_REPLY Order 1");
    expect_value(bus.conn, "Order WAITING_FOR_REPLY 1 t",
                 "SELECT concat_ws(' ', process_type, status, processes, oldest_reply_seconds "
                 "BETWEEN 3700 AND 3800) FROM commandbus.process_figures()");
    order_book(&s, "risk", 7);
    stage_go(&s);
    expect_problems(&s, "");
    stage_close(&s);
}

Test(manager_audit, a_compensation_that_waits_too_long_is_seen) /* PM.6 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_charge(&s);
    stage_serve(&s, "fx", CB_BUSINESS_RULE, NULL, "NO_MONEY");
    stage_go(&s);
    expect_status(&s, "COMPENSATING NO_MONEY", id);

    stage_wait(&s, 3700);
    expect_problems(&s, "LONG_REPLY Order 1");
    stage_close(&s);
}
