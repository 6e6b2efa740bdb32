/* Send, claim, settle. */
#include "life.h"

#include <stdio.h>

cb_uuid life_send(const char *arguments)
{
    char sql[1024];
    cb_uuid id;

    snprintf(sql, sizeof sql, "SELECT commandbus.send('fx', 'BookFx'%s%s)", *arguments ? ", " : "",
             arguments);
    char *text = test_value(bus.conn, sql, NULL);
    cr_assert(cb_uuid_parse(text, &id), "'%s' is not an id", text);
    free(text);
    return id;
}

long life_receive(void)
{
    return test_number(bus.conn,
                       "SELECT count(*) FROM commandbus.receive('fx', 'test', 1000) "
                       "WHERE event IS NULL",
                       NULL);
}

void life_settle(const cb_uuid *id, const char *outcome)
{
    expect_value(bus.conn, "SETTLED",
                 "SELECT s.verdicts[1] FROM commandbus.command_metadata c, "
                 "commandbus.settle('fx', 'test', ARRAY[c.command_id], ARRAY[c.lease_no], "
                 "ARRAY[$2], ARRAY['{\"rate\": \"1.1\"}'::jsonb], ARRAY['E_TEST'], "
                 "ARRAY['it did not work'], ARRAY[0]) s "
                 "WHERE c.command_id = $1::uuid AND c.domain = 'fx'",
                 id->text, outcome);
}

cb_uuid life_run(const char *arguments, const char *outcome)
{
    cb_uuid id = life_send(arguments);

    cr_assert_eq(life_receive(), 1, "more was due than the command just sent");
    life_settle(&id, outcome);
    return id;
}

cb_uuid life_into_tsq(const char *arguments)
{
    return life_run(arguments, "PERMANENT");
}

char *life_column(const cb_uuid *id, const char *column)
{
    char sql[256];

    snprintf(sql, sizeof sql,
             "SELECT %s FROM commandbus.command_metadata WHERE command_id = $1::uuid", column);
    return test_value(bus.conn, sql, id->text, NULL);
}

cb_purge_counts life_purge(cb_purge_options options)
{
    cb_purge_counts counts;
    cb_error e = { 0 };

    expect_ok(cb_purge(bus.db, &options, &counts, &e), e);
    return counts;
}
