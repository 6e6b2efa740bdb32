/* Tables for people, JSON for programs. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli.h"

#include <commandbus/api.h>
#include <commandbus/owned.h>
#include <commandbus/query.h>
#include <stdio.h>

/* Prints pages of one query as one aligned table, or with --json as an array of objects. A table
 * for people shows only these columns (NULL ends them; NULL alone: all), JSON always has
 * everything. */
void output_pages(const cli *c, cb_rows *const *pages, size_t n, const char *const *columns);

/* The same for one result. */
void output_rows(const cli *c, const cb_rows *rows, const char *const *columns);

/* A whole command: connects and prints all that the query finds; `none` is the remark when that
 * is nothing. Returns the exit code. */
int output_all(cli *c, bool (*query)(cb_db *db, cb_rows **ret, cb_error *e), const char *none);

/* One row as lines of "name  value", JSON values indented below their name. */
void output_record(const cb_rows *rows, size_t row);

/* One row as a JSON object, or only its members, without the braces. */
void output_json_members(FILE *out, const cb_rows *rows, size_t row);
void output_json_array(FILE *out, cb_rows *const *pages, size_t n);

/* Text of a database on a terminal: control characters are escaped. */
void output_plain(FILE *out, const char *text);

/* True when the stream is a terminal that wants colours. */
bool output_has_colour(FILE *out);

/* A table of texts for people: each column is as wide as its widest cell. */
typedef struct grid grid;

/* Colours of cells, as terminals number them. */
enum {
    GRID_PLAIN = 0,
    GRID_BOLD = 1,
    GRID_RED = 31,
    GRID_GREEN = 32,
    GRID_YELLOW = 33,
};

/* NULL ends the headers; one that starts with '>' is aligned to the right, without the sign.
 * They are borrowed. NULL when there is no memory, which everything below takes for an empty
 * table. */
grid *grid_new(const char *const *headers);
void grid_free(grid *g);
DEFINE_OWNED(grid, grid_free)

/* The next cell, row by row. Control characters of the text are shown, not obeyed. */
void grid_add(grid *g, int colour, const char *fmt, ...) CB_PRINTF(3, 4);

void grid_print(FILE *out, const grid *g, bool colour);

#endif
