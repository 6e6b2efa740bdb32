/* Files of JSON lines. */
#ifndef CLI_JSONL_H
#define CLI_JSONL_H

#include <commandbus/error.h>
#include <commandbus/owned.h>
#include <stdbool.h>
#include <stddef.h>

#define JSONL_LONGEST ((size_t)2 << 20) /* bytes in a line */

typedef struct jsonl jsonl;

/* Opens a file, or stdin for "-". */
bool jsonl_open(const char *path, jsonl **ret, cb_error *e);
void jsonl_free(jsonl *file);
DEFINE_OWNED(jsonl, jsonl_free)

/* The next line that is not blank, without its line end. The caller owns *line (free it), which is
 * NULL at the end of the file; *number counts from 1. A failure names the line. */
bool jsonl_next(jsonl *file, char **line, size_t *length, size_t *number, cb_error *e);

/* A whole file ("-" is stdin) of at most `most` bytes as text. The caller owns *ret. */
bool read_text_file(const char *path, size_t most, char **ret, cb_error *e);

/* @FILE and - are read, all else is the text itself; NULL stays NULL. *owned is for the caller to free. */
bool read_text_argument(const char *text, const char **ret, char **owned, cb_error *e);

#endif
