/* The JSON files of this set: reading one, and taking from it what must be there. */
#ifndef REPORTING_DOCUMENT_H
#define REPORTING_DOCUMENT_H

#include "path.h"

#include <commandbus/error.h>

/* Reads the file that a command names. False: *failed is the run's outcome (INVALID_PATH,
 * FILE_MISSING, FILE_CORRUPT). The caller owns *ret, an object. */
bool document_read(cb_context *ctx, const cb_command *command, const char *field, const char *text,
                   file_kind kind, json_object **ret, cb_outcome *failed);
/* Writes it under the path of the command, in one piece. CB_SUCCESS, or what came of it. */
cb_outcome document_write(cb_context *ctx, const file_path *path, json_object *document);

/* A text or a list that must be there: NULL, with the error, when it is not. Borrowed. */
const char *document_text(json_object *object, const char *name, cb_error *e);
json_object *document_list(json_object *object, const char *name, cb_error *e);

/* Permanent FILE_CORRUPT: no retry mends a file. */
cb_outcome document_corrupt(cb_context *ctx, const cb_error *e);

#endif
