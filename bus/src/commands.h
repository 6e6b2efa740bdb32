/* Commands on their way out: checked without asking the database, and written as the JSON that
 * send_many and create_batch read. */
#ifndef CB_COMMANDS_H
#define CB_COMMANDS_H

#include <commandbus/send.h>

#include "buffer.h"

/* What is in the struct and can be wrong: required fields, JSON, UUIDs, finite numbers. */
bool command_check(const cb_send *command, cb_error *e);

/* Fills *id with the command's own id in lower case, or a new one. */
void command_id(const cb_send *command, cb_uuid *id);

/* Checks n commands, gives each its id, and refuses an id that stands twice in one domain. */
bool commands_check(const cb_send *commands, size_t n, cb_uuid *ids, cb_error *e);

/* Replaces the buffer's content by a JSON array of the first of n commands: `chunk` of them, fewer
 * when they have more than 4 MiB. Returns how many. */
size_t commands_write(buffer *b, const cb_send *commands, const cb_uuid *ids, size_t n,
                      size_t chunk);

#endif
