/* A table of texts for people. */
#include "grid.h"

#include "output.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdlib.h>

typedef struct {
    char *text;
    int colour;
} cell;

struct grid {
    const char *const *headers;
    size_t columns, n, room;
    cell *cells;
};

grid *grid_new(const char *const *headers)
{
    grid *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->headers = headers;
    while (headers[g->columns])
        g->columns++;
    return g;
}

void grid_free(grid *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n; i++)
        free(g->cells[i].text);
    free(g->cells);
    free(g);
}

static bool make_room(grid *g)
{
    size_t room = g->room ? g->room * 2 : 64;
    cell *cells = g->n < g->room ? g->cells : realloc(g->cells, room * sizeof *cells);

    if (!cells)
        return false;
    g->room = g->n < g->room ? g->room : room;
    g->cells = cells;
    return true;
}

/* With control characters escaped; NULL when there is no memory. */
static char *escaped(const char *text)
{
    char *copy = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&copy, &size);

    if (!out)
        return NULL;
    output_plain(out, text);
    fclose(out);
    return copy;
}

void grid_add(grid *g, int colour, const char *fmt, ...)
{
    char *raw = NULL;
    va_list args;

    if (!g || !make_room(g))
        return;
    va_start(args, fmt);
    int length = vasprintf(&raw, fmt, args);
    va_end(args);
    if (length < 0)
        return;
    g->cells[g->n++] = (cell){ .text = escaped(raw), .colour = colour };
    free(raw);
}

static bool is_right(const grid *g, size_t column)
{
    return g->headers[column][0] == '>';
}

static const char *header(const grid *g, size_t column)
{
    return g->headers[column] + is_right(g, column);
}

static const char *text_of(const cell *c)
{
    return c->text ? c->text : "";
}

static size_t width_of(const grid *g, size_t column)
{
    size_t widest = utf8_count(header(g, column));

    for (size_t i = column; i < g->n; i += g->columns) {
        size_t width = utf8_count(text_of(&g->cells[i]));
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void print_cell(FILE *out, const grid *g, size_t column, const char *text, int colour)
{
    size_t width = width_of(g, column), length = utf8_count(text);
    int gap = width > length ? (int)(width - length) : 0;
    bool last = column + 1 == g->columns;

    if (is_right(g, column))
        fprintf(out, "%*s", gap, "");
    if (colour)
        fprintf(out, "\033[%dm%s\033[0m", colour, text);
    else
        fputs(text, out);
    if (!is_right(g, column) && !last)
        fprintf(out, "%*s", gap, "");
    fputs(last ? "\n" : "  ", out);
}

void grid_print(FILE *out, const grid *g, bool colour)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->columns; i++)
        print_cell(out, g, i, header(g, i), colour ? GRID_BOLD : GRID_PLAIN);
    for (size_t i = 0; i < g->n; i++)
        print_cell(out, g, i % g->columns, text_of(&g->cells[i]),
                   colour ? g->cells[i].colour : GRID_PLAIN);
}
