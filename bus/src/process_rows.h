/* Process rows as claim_processes and read_processes give them. */
#ifndef CB_PROCESS_ROWS_H
#define CB_PROCESS_ROWS_H

#include <commandbus/process_row.h>

#include "array.h"
#include "owned_pq.h"

/* True when some that were due were left because of their size. */
bool process_rows_left_some(const PGresult *result);

/* Adopts a result in text, also on failure. NULL is a claim of nothing. */
bool process_rows_adopt(PGresult *result, cb_process_claim **ret, cb_error *e);

/* The names and the versions of the types, as array parameters. */
bool process_kind_arrays(const cb_process_kind *kinds, size_t n, buffer *types, buffer *versions,
                         cb_error *e);

#endif
