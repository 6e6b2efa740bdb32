/* Processes as rows, on the fixture's connections: put there by SQL, leased by worker "w", and settled by
 * items whose JSON the test says. */
#ifndef TEST_SUPPORT_PROCESS_ROWS_H
#define TEST_SUPPORT_PROCESS_ROWS_H

#include <commandbus/process_request.h>
#include <commandbus/process_row.h>

#include "expect.h"
#include "fixture.h"

/* A process of type Test, domain payments, EXECUTING under lease 1 of "w" for a minute. `sets` changes that,
 * as in UPDATE … SET, or is "". */
cb_uuid process_put(const char *sets);

/* One that waits for an operator, with an error code, leased by nobody. */
cb_uuid process_park(const char *error_code);

/* A command of domain fx that the process has sent and waits for, as record 1. */
cb_uuid process_put_command(const cb_uuid *process_id);

/* An item with the fence (1, settle_no) and further members, such as "\"wake\":\"NOW\"". Static storage, for
 * the next few calls. */
const char *process_item(const cb_uuid *id, int settle_no, const char *members);

/* Settles that as "w" and gives the verdict. */
cb_verdict process_settle(const cb_uuid *id, int settle_no, const char *members);

/* An expression over the process's row, and over its history, as text. The caller frees it. */
char *process_column(const cb_uuid *id, const char *expression);
char *process_records(const cb_uuid *id, const char *expression);
/* Its events in order, separated by a space. */
char *process_events(const cb_uuid *id);

#define expect_text_(expected, call)                                              \
    do {                                                                          \
        char *is_ = (call);                                                       \
        cr_assert_str_eq(is_, (expected), "found '%s', not '%s'", is_, expected); \
        free(is_);                                                                \
    } while (0)
#define expect_process(id, expression, expected) \
    expect_text_(expected, process_column((id), (expression)))
/* Of each record in order, separated by "; ". */
#define expect_records(id, expression, expected) \
    expect_text_(expected, process_records((id), (expression)))
#define expect_process_events(id, expected) expect_text_(expected, process_events(id))

#define expect_process_verdict(expected, found) \
    cr_assert_str_eq(cb_verdict_name(found), cb_verdict_name(expected))

#endif
