/* Ids as text, 36 characters and a NUL. */
#ifndef COMMANDBUS_UUID_H
#define COMMANDBUS_UUID_H

#include <commandbus/api.h>
#include <stdbool.h>

typedef struct {
    char text[37];
} cb_uuid;

/* A UUID of version 7: ids made one after the other sort in that order, which keeps index
 * insertions on few pages. Thread-safe. */
CB_API cb_uuid cb_uuid_new(void);

/* The same id for the same (namespace, name), always (version 5). */
CB_API cb_uuid cb_uuid_from_name(const cb_uuid *space, const char *name);

/* Likewise of version 8 (RFC 9562): the ids of a process's commands, and the keys of its steps.
 * The bus takes them as command ids from processes only, so a command with such an id was sent
 * by the process whose id is its correlation id; the second tells. */
CB_API cb_uuid cb_uuid_derived(const cb_uuid *process_id, const char *name);
CB_API bool cb_uuid_is_derived(const cb_uuid *id);

/* False unless `text` is a UUID in its usual 36 characters; *ret is then lower case. */
CB_API bool cb_uuid_parse(const char *text, cb_uuid *ret);

#endif
