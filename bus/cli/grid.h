/* A table of texts for people: each column is as wide as its widest cell. */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include <commandbus/api.h>
#include <commandbus/owned.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct grid grid;

/* Colours of cells, as terminals number them. */
enum {
    GRID_PLAIN = 0,
    GRID_BOLD = 1,
    GRID_RED = 31,
    GRID_GREEN = 32,
    GRID_YELLOW = 33,
};

/* NULL ends the headers; one that starts with '>' is aligned to the right, without the sign. They are
 * borrowed. NULL when there is no memory, which everything below takes for an empty table. */
grid *grid_new(const char *const *headers);
void grid_free(grid *g);
DEFINE_OWNED(grid, grid_free)

/* The next cell, row by row. Control characters of the text are shown, not obeyed. */
void grid_add(grid *g, int colour, const char *fmt, ...) CB_PRINTF(3, 4);

void grid_print(FILE *out, const grid *g, bool colour);

#endif
