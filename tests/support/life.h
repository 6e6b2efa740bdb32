/* The life of a command of domain fx in single steps, by SQL on the fixture's connection. Each step
 * fails the test unless it happens. */
#ifndef TEST_SUPPORT_LIFE_H
#define TEST_SUPPORT_LIFE_H

#include "expect.h"

/* Sends a BookFx. `arguments` are further ones of commandbus.send, such as "max_attempts => 1". */
cb_uuid life_send(const char *arguments);

/* Claims everything that is due, as worker 'test'. Returns how many commands that were. */
long life_receive(void);

/* Settles a command that was claimed: SUCCESS with the result {"rate": "1.1"}, anything else with
 * error code E_TEST and no delay before a retry. */
void life_settle(const cb_uuid *id, const char *outcome);

/* Sends, claims and settles one, when nothing else is due. */
cb_uuid life_run(const char *arguments, const char *outcome);
/* The same with a PERMANENT: now it is in the troubleshooting queue. */
cb_uuid life_into_tsq(const char *arguments);

/* What was removed. */
cb_purge_counts life_purge(cb_purge_options options);

/* A column of the command's row as text, "" for NULL; the caller frees it. */
char *life_column(const cb_uuid *id, const char *column);

#endif
