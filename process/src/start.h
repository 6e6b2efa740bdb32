/* What starting one process and starting a batch of them share. */
#ifndef PROCESS_START_H
#define PROCESS_START_H

#include <json-c/json_object.h>

#include "types.h"

/* NULL with the reason when this program does not have the type. */
const type_entry *start_type(const cb_process_types *types, const char *name, cb_error *e);

/* The state as JSON, which the caller owns; NULL with the reason. */
json_object *start_state(const cb_process_type *type, const void *state, cb_error *e);

/* Makes the request; when nobody has registered the type yet, registers it and makes it again. */
typedef bool start_request(cb_db *db, const void *what, cb_error *e);
bool start_registered(cb_db *db, const cb_process_types *types, const type_entry *entry,
                      start_request *request, const void *what, cb_error *e);

#endif
