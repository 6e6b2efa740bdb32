/* The audit trail of a command as a story. */
#ifndef CLI_TIMELINE_H
#define CLI_TIMELINE_H

#include <commandbus/query.h>

/* One line an event: when, how long after the first, what, by whom, and its details. */
void timeline_print(const cb_rows *trail);

#endif
