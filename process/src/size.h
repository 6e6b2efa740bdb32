/* How much a run may hold. The limit is the domain's content_limit, in bytes of text, as the claimed row has it. */
#ifndef PROCESS_SIZE_H
#define PROCESS_SIZE_H

#include <commandbus/process.h>
#include <commandbus/process_row.h>

/* What a claim reads of each record beside its name and its values: measured_content() counts the same. */
enum {
    RECORD_BYTES = 200
};

/* Whether the row may be read at all; looks at its text only. */
bool size_is_loadable(const cb_process_row *row, cb_error *e);
/* Of an inbox that may not be read: the text of one with nothing but operators' decisions. The caller frees it;
 * NULL without memory. */
char *size_decisions(const char *inbox);

/* Counts from what the row has. */
void size_begin(cb_process *p);
/* A record gets these changes of the state (NULL: none), a value, so many bytes. False: that is too much; then the
 * state is what it was as of the last record, and the process is parked. */
bool size_add_changes(cb_process *p, json_object *changes);
bool size_add_value(cb_process *p, json_object *value);
bool size_add(cb_process *p, size_t bytes);
/* Whether the state as it is now is not too large. */
bool size_state_fits(cb_process *p);

#endif
