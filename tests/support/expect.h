/* What tests expect of the bus and its tables: macros, so that a failure names the test's own line.
 *
 * What is expected comes first, then whose it is, then which part: expect_command("COMPLETED 1",
 * id, "status, attempts"). A command or a process is looked up on the fixture's connection. */
#ifndef TEST_SUPPORT_EXPECT_H
#define TEST_SUPPORT_EXPECT_H

#include "fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The first value of a query, whose text parameters may follow it. */
#define expect_value(conn, expected, ...)                                                   \
    do {                                                                                    \
        char *found_ = test_value((conn), __VA_ARGS__, NULL);                               \
        cr_assert_str_eq(found_, (expected), "expected '%s', found '%s' by %s", (expected), \
                         found_, #__VA_ARGS__);                                             \
        free(found_);                                                                       \
    } while (0)

#define expect_number(conn, expected, ...)                                                  \
    do {                                                                                    \
        long found_ = test_number((conn), __VA_ARGS__, NULL);                               \
        cr_assert_eq(found_, (long)(expected), "expected %ld, found %ld", (long)(expected), \
                     found_);                                                               \
    } while (0)

/* A statement fails with this SQLSTATE, or succeeds with "00000". */
#define expect_sqlstate(conn, expected, sql)                                                      \
    do {                                                                                          \
        const char *found_ = test_sqlstate((conn), (sql));                                        \
        cr_assert_str_eq(found_, (expected), "expected %s, found %s: %s\n%s", (expected), found_, \
                         (sql), PQerrorMessage(conn));                                            \
    } while (0)

/* A call of the library succeeds, or fails with this code; `e` is the cb_error it was given. */
#define expect_ok(call, e) \
    cr_assert((call), "%s %s: %s", cb_code_name((e).code), (e).sqlstate, (e).message)

#define expect_error(expected, call, e)                                                         \
    do {                                                                                        \
        (e) = (cb_error){ 0 };                                                                  \
        cr_assert(!(call), "%s succeeded", #call);                                              \
        cr_assert_eq((e).code, (expected), "expected %s, found %s: %s", cb_code_name(expected), \
                     cb_code_name((e).code), (e).message);                                      \
    } while (0)

/* Two texts of bus_contents() are the same: nothing changed in between. Frees both. */
#define expect_unchanged(before, after)                              \
    do {                                                             \
        char *was_ = (before), *is_ = (after);                       \
        cr_assert_str_eq(is_, was_, "was:\n%s\nis:\n%s", was_, is_); \
        free(was_);                                                  \
        free(is_);                                                   \
    } while (0)

#define expect_verdict(expected, found) \
    cr_assert_str_eq(cb_verdict_name(found), cb_verdict_name(expected))

/* ---- a command ---- */

/* Columns of its row, those that are NULL left out. */
#define expect_command(expected, id, columns)                                \
    expect_value(bus.conn, expected,                                         \
                 "SELECT concat_ws(' ', " columns                            \
                 ") FROM commandbus.command_metadata WHERE command_id = $1", \
                 (id).text)

/* The events of its audit trail, in order, one space between them. */
#define expect_trail(expected, id)                                                           \
    expect_value(bus.conn, expected,                                                         \
                 "SELECT string_agg(event_type, ' ' ORDER BY at, id) FROM commandbus.audit " \
                 "WHERE command_id = $1",                                                    \
                 (id).text)

/* Where messages that name it are: how many in the queue of fx, its archive, the replies. */
#define expect_messages(expected, id)                                                            \
    expect_value(                                                                                \
        bus.conn, expected,                                                                      \
        "SELECT (SELECT count(*) FROM pgmq.q_fx__commands WHERE message ->> 'command_id' = $1) " \
        "|| ' queued, ' || "                                                                     \
        "(SELECT count(*) FROM pgmq.a_fx__commands WHERE message ->> 'command_id' = $1) "        \
        "|| ' archived, ' || "                                                                   \
        "(SELECT count(*) FROM pgmq.q_payments__replies WHERE message ->> 'command_id' = $1) "   \
        "|| ' replied'",                                                                         \
        (id).text)

/* Parts of the last reply to it: expect_reply("FAILED false", id, "'outcome', 'final'"). */
#define expect_reply(expected, id, keys)                                              \
    expect_value(bus.conn, expected,                                                  \
                 "SELECT (SELECT string_agg(message ->> key, ' ' ORDER BY n) "        \
                 "FROM unnest(ARRAY[" keys "]) WITH ORDINALITY k(key, n)) "           \
                 "FROM pgmq.q_payments__replies WHERE message ->> 'command_id' = $1 " \
                 "ORDER BY msg_id DESC LIMIT 1",                                      \
                 (id).text)

/* ---- a batch ---- */

/* "COMPLETED total/completed/failed/canceled, in troubleshooting/in progress/pending". */
#define expect_batch(expected, id)                                                              \
    expect_value(bus.conn, expected,                                                            \
                 "SELECT format('%s %s/%s/%s/%s, %s/%s/%s', status, total, completed, failed, " \
                 "canceled, in_troubleshooting, in_progress, pending) "                         \
                 "FROM commandbus.batch_status WHERE batch_id = $1::uuid",                      \
                 (id).text)

/* How often its end was told, in the audit and to this queue. */
#define expect_batch_told(expected, id, queue)                                                   \
    do {                                                                                         \
        expect_number(                                                                           \
            bus.conn, expected,                                                                  \
            "SELECT count(*) FROM commandbus.audit WHERE event_type = 'BATCH_COMPLETED' "        \
            "AND details ->> 'batch_id' = $1",                                                   \
            (id).text);                                                                          \
        expect_number(bus.conn, expected,                                                        \
                      "SELECT count(*) FROM pgmq.q_" queue " WHERE message ->> 'batch_id' = $1", \
                      (id).text);                                                                \
    } while (0)

/* ---- a process: what the kit has is in stage.h ---- */

/* Columns of its row, those that are NULL left out. */
#define expect_process(expected, id, columns)                       \
    expect_value(bus.conn, expected,                                \
                 "SELECT concat_ws(' ', " columns                   \
                 ") FROM commandbus.process WHERE process_id = $1", \
                 (id).text)

/* Part of its error message. */
#define expect_message(part, id)                                                              \
    do {                                                                                      \
        char *found_ = test_value(                                                            \
            bus.conn, "SELECT error_message FROM commandbus.process WHERE process_id = $1",   \
            (id).text, NULL);                                                                 \
        cr_assert(strstr(found_, (part)), "'%s' is not in the message '%s'", (part), found_); \
        free(found_);                                                                         \
    } while (0)

/* An expression over each of its records in order, separated by "; ". */
#define expect_records(expected, id, expression)                                                 \
    expect_value(                                                                                \
        bus.conn, expected,                                                                      \
        "SELECT string_agg((" expression                                                         \
        ")::text, '; ' ORDER BY ordinal) FROM commandbus.process_history WHERE process_id = $1", \
        (id).text)

/* An expression over its records of this kind and name. */
#define expect_record(expected, id, of_kind, of_name, expression)           \
    expect_value(bus.conn, expected,                                        \
                 "SELECT string_agg(" expression                            \
                 ", '|' ORDER BY ordinal) FROM commandbus.process_history " \
                 "WHERE process_id = $1 AND kind::text = $2 AND name = $3", \
                 (id).text, of_kind, of_name)

/* Its events in order, one space between them. */
#define expect_process_events(expected, id)                                                     \
    expect_value(bus.conn, expected,                                                            \
                 "SELECT string_agg(event, ' ' ORDER BY at, id) FROM commandbus.process_event " \
                 "WHERE process_id = $1",                                                       \
                 (id).text)

/* How often its audit tells an event. */
#define expect_told(expected, id, name)                                                       \
    expect_value(                                                                             \
        bus.conn, expected,                                                                   \
        "SELECT count(*) FROM commandbus.process_audit WHERE process_id = $1 AND event = $2", \
        (id).text, name)

#endif
