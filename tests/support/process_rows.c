/* Processes by SQL. */
#include "process_rows.h"

#include <stdio.h>

cb_uuid process_put(const char *sets)
{
    cb_uuid id = cb_uuid_new();
    char sql[2048];

    snprintf(sql, sizeof sql,
             "INSERT INTO commandbus.process (process_id, lease_no, lease_owner, lease_until, "
             "wake_at, created_at, updated_at, status, execution_model, domain, process_type, "
             "reply_queue, initial_state, state) VALUES ('%s', 1, 'w', now() + interval '1 min', "
             "now() + interval '1 min', now(), now(), 'EXECUTING', 'PROCESS_STEP', 'payments', "
             "'Test', 'payments__replies', '{}', '{\"n\": 0}')",
             id.text);
    test_exec(bus.conn, sql);
    if (*sets) {
        snprintf(sql, sizeof sql, "UPDATE commandbus.process SET %s WHERE process_id = '%s'", sets,
                 id.text);
        test_exec(bus.conn, sql);
    }
    return id;
}

cb_uuid process_park(const char *error_code)
{
    char sets[512];

    snprintf(sets, sizeof sets,
             "status = 'WAITING_FOR_TSQ', tsq_at = now(), lease_owner = NULL, lease_until = NULL, "
             "wake_at = NULL, error_code = '%s', error_message = 'it broke'",
             error_code);
    return process_put(sets);
}

cb_uuid process_put_command(const cb_uuid *process_id)
{
    char sql[1024];
    cb_uuid id = test_send_of_process(bus.conn, process_id, "fx", "BookFx", "{}");

    snprintf(sql, sizeof sql,
             "INSERT INTO commandbus.process_history (process_id, command_id, at, ordinal, "
             "attempts, send_no, kind, status, name, domain, command_type) VALUES ('%s', '%s', "
             "now(), 1, 1, 1, 'COMMAND', 'WAITING', 'bookFx', 'fx', 'BookFx')",
             process_id->text, id.text);
    test_exec(bus.conn, sql);
    return id;
}

const char *process_item(const cb_uuid *id, int settle_no, const char *members)
{
    static char items[8][4096];
    static unsigned next;
    char *item = items[next++ % 8];

    snprintf(item, sizeof items[0], "{\"process_id\":\"%s\",\"lease_no\":1,\"settle_no\":%d%s%s}",
             id->text, settle_no, *members ? "," : "", members);
    return item;
}

cb_verdict process_settle(const cb_uuid *id, int settle_no, const char *members)
{
    cb_process_settlement one = { .process_id = *id, .item = process_item(id, settle_no, members) };
    cb_error e = { 0 };

    expect_ok(cb_process_settle(bus.db, "w", &one, 1, &e), e);
    return one.verdict;
}
