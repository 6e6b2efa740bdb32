/* Processes as rows, on the fixture's connections: put there by SQL, leased by worker "w", and
 * settled by items whose JSON the test says. */
#ifndef TEST_SUPPORT_PROCESS_ROWS_H
#define TEST_SUPPORT_PROCESS_ROWS_H

#include <commandbus/process_item.h>
#include <commandbus/process_request.h>
#include <commandbus/process_row.h>

#include "expect.h"

/* A process of type Test, domain payments, EXECUTING under lease 1 of "w" for a minute. `sets`
 * changes that, as in UPDATE … SET, or is "". */
cb_uuid process_put(const char *sets);

/* One that waits for an operator, with an error code, leased by nobody. */
cb_uuid process_park(const char *error_code);

/* A command of domain fx that the process has sent and waits for, as record 1. */
cb_uuid process_put_command(const cb_uuid *process_id);

/* An item as settle_processes takes it, with the fence (1, settle_no) and further members, such as
 * "\"wake\":\"NOW\"". Static storage, for the next few calls. */
const char *process_item(const cb_uuid *id, int settle_no, const char *members);

/* Settles that as "w" and gives the verdict. */
cb_verdict process_settle(const cb_uuid *id, int settle_no, const char *members);

/* The same item as the C library has it, all of its records being new ones; the caller's. */
cb_process_item *process_item_new(const cb_uuid *id, int settle_no, const char *members);
/* Frees the items of these. */
void settlements_free(cb_process_settlement *settlements, size_t n);

#endif
