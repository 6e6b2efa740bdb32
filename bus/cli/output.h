/* Tables for people, JSON for programs. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli.h"

#include <commandbus/query.h>
#include <stdio.h>

/* Prints pages of one query as one aligned table, or with --json as an array of objects. A table for
 * people shows only these columns (NULL ends them; NULL alone: all), JSON always has everything. */
void output_pages(const cli *c, cb_rows *const *pages, size_t n, const char *const *columns);

/* The same for one result. */
void output_rows(const cli *c, const cb_rows *rows, const char *const *columns);

/* One row as lines of "name  value", JSON values indented below their name. */
void output_record(const cb_rows *rows, size_t row);

/* One row as a JSON object, or only its members, without the braces. */
void output_json_members(FILE *out, const cb_rows *rows, size_t row);
void output_json_array(FILE *out, cb_rows *const *pages, size_t n);

/* Text of a database on a terminal: control characters are escaped. */
void output_plain(FILE *out, const char *text);

/* True when the stream is a terminal that wants colours. */
bool output_has_colour(FILE *out);

#endif
