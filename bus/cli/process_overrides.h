/* State fields given as --set field=value, as one JSON object. */
#ifndef CLI_PROCESS_OVERRIDES_H
#define CLI_PROCESS_OVERRIDES_H

#include "cli.h"

/* Reads the process's state: a value is text where the field holds text now, or where it is no JSON. A field
 * that the state does not have is refused. The caller frees *ret. */
bool process_overrides(cb_db *db, const char *process_id, const arg_list *set, char **ret,
                       cb_error *e);

#endif
