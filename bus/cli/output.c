/* Tables for people, JSON for programs. */
#include "output.h"

#include "figures.h"
#include "json_text.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char digits[] = "0123456789";
static const char output_time[] = "dddd-dd-dd dd:dd:dd";

/* True for a whole "2026-03-01 08:00:00.123456+00". */
static bool output_is_time(const char *text)
{
    const char *zone = text + sizeof output_time - 1;

    if (!moment_has_form(text, output_time))
        return false;
    if (*zone == '.')
        zone += 1 + strspn(zone + 1, digits);
    return (*zone == '+' || *zone == '-') && zone[1 + strspn(zone + 1, "0123456789:")] == '\0';
}

/* As RFC 3339 has it: a T between, and minutes in the zone. */
static void output_write_time(FILE *out, const char *text)
{
    size_t length = strlen(text);

    fprintf(out, "\"%.10sT%s%s\"", text, text + 11, text[length - 3] == ':' ? "" : ":00");
}

static void output_write_value(FILE *out, const cb_rows *rows, size_t row, size_t column)
{
    const char *value = cb_rows_value(rows, row, column);

    if (!value)
        fputs("null", out);
    else if (cb_rows_column_is_json(rows, column))
        fputs(value, out);
    else if (cb_rows_column_is_bool(rows, column))
        fputs(*value == 't' ? "true" : "false", out);
    else if (cb_rows_column_is_number(rows, column) &&
             strspn(value, "0123456789+-.eE") == strlen(value))
        fputs(value, out); /* but not NaN and Infinity, which JSON does not know */
    else if (output_is_time(value))
        output_write_time(out, value);
    else
        json_write_string(out, value);
}

void output_json_members(FILE *out, const cb_rows *rows, size_t row)
{
    for (size_t i = 0; i < cb_rows_columns(rows); i++) {
        if (i > 0)
            fputc(',', out);
        json_write_string(out, cb_rows_column_name(rows, i));
        fputc(':', out);
        output_write_value(out, rows, row, i);
    }
}

void output_json_array(FILE *out, cb_rows *const *pages, size_t n)
{
    const char *separator = "";

    fputc('[', out);
    for (size_t page = 0; page < n; page++) {
        for (size_t row = 0; row < cb_rows_count(pages[page]); row++) {
            fprintf(out, "%s\n {", separator);
            output_json_members(out, pages[page], row);
            fputc('}', out);
            separator = ",";
        }
    }
    fputs(*separator ? "\n]" : "]", out);
}

void output_plain(FILE *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '\n' || *c == '\t')
            fputs(*c == '\n' ? "\\n" : "\\t", out);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(out, "\\x%02x", *c);
        else if (*c == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0)
            fprintf(out, "\\u%04x", *++c); /* the other control characters of Unicode */
        else
            fputc(*c, out);
    }
}

/* A column of a grid. */
typedef struct {
    const char *name; /* borrowed */
    bool right;       /* its texts stand to the right */
    size_t source;    /* the column of the rows that it shows */
    size_t width;     /* of its widest text */
} grid_column;

typedef struct {
    char *text;
    int colour;
} grid_cell;

struct grid {
    grid_column *columns;
    size_t n_columns, n, room;
    grid_cell *cells;
};

static grid *grid_with_room(size_t columns)
{
    grid *g = calloc(1, sizeof *g);

    if (g && !(g->columns = calloc(columns + 1, sizeof *g->columns))) {
        free(g);
        return NULL;
    }
    return g;
}

static void grid_add_column(grid *g, const char *name, bool right, size_t source)
{
    g->columns[g->n_columns++] =
        (grid_column){ .name = name, .right = right, .source = source, .width = utf8_count(name) };
}

grid *grid_new(const char *const *headers)
{
    size_t n = 0;

    while (headers[n])
        n++;
    grid *g = grid_with_room(n);
    for (size_t i = 0; g && i < n; i++) {
        bool right = headers[i][0] == '>';
        grid_add_column(g, headers[i] + right, right, i);
    }
    return g;
}

void grid_free(grid *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n; i++)
        free(g->cells[i].text);
    free(g->cells);
    free(g->columns);
    free(g);
}

static bool grid_make_room(grid *g)
{
    size_t room = g->room ? g->room * 2 : 64;
    grid_cell *cells = g->n < g->room ? g->cells : realloc(g->cells, room * sizeof *cells);

    if (!cells)
        return false;
    g->room = g->n < g->room ? g->room : room;
    g->cells = cells;
    return true;
}

/* With control characters escaped; NULL when there is no memory. */
static char *grid_escape(const char *text)
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

    if (!g || !grid_make_room(g))
        return;
    va_start(args, fmt);
    int length = vasprintf(&raw, fmt, args);
    va_end(args);
    if (length < 0)
        return;

    grid_column *column = &g->columns[g->n % g->n_columns];
    char *text = grid_escape(raw);
    size_t width = text ? utf8_count(text) : 0;
    column->width = width > column->width ? width : column->width;
    g->cells[g->n++] = (grid_cell){ .text = text, .colour = colour };
    free(raw);
}

static void grid_print_cell(FILE *out, const grid *g, size_t i, const char *text, int colour)
{
    const grid_column *column = &g->columns[i];
    size_t length = utf8_count(text);
    int gap = column->width > length ? (int)(column->width - length) : 0;
    bool last = i + 1 == g->n_columns;

    if (column->right)
        fprintf(out, "%*s", gap, "");
    if (colour)
        fprintf(out, "\033[%dm%s\033[0m", colour, text);
    else
        fputs(text, out);
    if (!column->right && !last)
        fprintf(out, "%*s", gap, "");
    fputs(last ? "\n" : "  ", out);
}

void grid_print(FILE *out, const grid *g, bool colour)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n_columns; i++)
        grid_print_cell(out, g, i, g->columns[i].name, colour ? GRID_BOLD : GRID_PLAIN);
    for (size_t i = 0; i < g->n; i++)
        grid_print_cell(out, g, i % g->n_columns, g->cells[i].text ? g->cells[i].text : "",
                        colour ? g->cells[i].colour : GRID_PLAIN);
}

/* NULL is shown as "-", a time without its fraction. */
static void grid_add_value(grid *g, const cb_rows *rows, size_t row, size_t column)
{
    const char *value = cb_rows_value(rows, row, column);
    const int second = (int)sizeof output_time - 1; /* characters up to the fraction */

    if (value && cb_rows_column_is_bool(rows, column)) {
        grid_add(g, GRID_PLAIN, "%s", *value == 't' ? "yes" : "no");
    } else if (value && moment_has_form(value, output_time) && value[second] == '.') {
        const char *fraction = value + second + 1;
        grid_add(g, GRID_PLAIN, "%.*s%s", second, value, fraction + strspn(fraction, digits));
    } else {
        grid_add(g, GRID_PLAIN, "%s", value ? value : "-");
    }
}

static bool output_is_chosen(const char *name, const char *const *names)
{
    while (names && *names && strcmp(name, *names) != 0)
        names++;
    return !names || *names;
}

static void output_table(cb_rows *const *pages, size_t n, const char *const *names)
{
    size_t columns = cb_rows_columns(pages[0]);
    OWNED(grid) g = grid_with_room(columns);

    for (size_t i = 0; g && i < columns; i++) {
        const char *name = cb_rows_column_name(pages[0], i);
        if (output_is_chosen(name, names))
            grid_add_column(g, name, cb_rows_column_is_number(pages[0], i), i);
    }
    for (size_t page = 0; g && page < n; page++) {
        for (size_t row = 0; row < cb_rows_count(pages[page]); row++) {
            for (size_t i = 0; i < g->n_columns; i++)
                grid_add_value(g, pages[page], row, g->columns[i].source);
        }
    }
    grid_print(stdout, g, false);
}

void output_pages(const cli *c, cb_rows *const *pages, size_t n, const char *const *columns)
{
    if (c->json) {
        output_json_array(stdout, pages, n);
        putchar('\n');
    } else if (n > 0) {
        output_table(pages, n, columns);
    }
}

void output_rows(const cli *c, const cb_rows *rows, const char *const *columns)
{
    output_pages(c, (cb_rows *const[]){ (cb_rows *)rows }, 1, columns);
}

int output_all(cli *c, bool (*query)(cb_db *db, cb_rows **ret, cb_error *e), const char *none)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !query(c->db, &rows, &e))
        return cli_fail(c, &e);
    output_rows(c, rows, NULL);
    if (cb_rows_count(rows) == 0)
        cli_note(c, "%s", none);
    return EXIT_OK;
}

void output_record(const cb_rows *rows, size_t row)
{
    size_t width = 0;

    for (size_t i = 0; i < cb_rows_columns(rows); i++) {
        size_t length = strlen(cb_rows_column_name(rows, i));
        width = length > width ? length : width;
    }
    for (size_t i = 0; i < cb_rows_columns(rows); i++) {
        const char *value = cb_rows_value(rows, row, i);
        if (!value)
            continue;
        printf("%-*s  ", (int)width, cb_rows_column_name(rows, i));
        if (cb_rows_column_is_json(rows, i))
            json_write_pretty(stdout, value, (int)width + 2);
        else
            output_plain(stdout, value);
        putchar('\n');
    }
}

bool output_has_colour(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fileno(out)) && !(no_colour && *no_colour) && !(term && !strcmp(term, "dumb"));
}
