/* Tables for people, JSON for programs. */
#include "output.h"

#include "json_text.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* True for a whole "2026-03-01 08:00:00.123456+00"; a 'd' in the form is a digit. */
static bool is_time(const char *text)
{
    static const char form[] = "dddd-dd-dd dd:dd:dd";
    const char *zone = text + sizeof form - 1;

    for (size_t i = 0; form[i]; i++) {
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    }
    if (*zone == '.')
        zone += 1 + strspn(zone + 1, "0123456789");
    return (*zone == '+' || *zone == '-') && zone[1 + strspn(zone + 1, "0123456789:")] == '\0';
}

/* As RFC 3339 has it: a T between, and minutes in the zone. */
static void write_time(FILE *out, const char *text)
{
    size_t length = strlen(text);

    fprintf(out, "\"%.10sT%s%s\"", text, text + 11, text[length - 3] == ':' ? "" : ":00");
}

static void write_value(FILE *out, const cb_rows *rows, size_t row, size_t column)
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
    else if (is_time(value))
        write_time(out, value);
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
        write_value(out, rows, row, i);
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

/* True for "2026-03-01 08:00:00.123456+00"; then *fraction is where the fraction starts. */
static bool is_timestamp(const char *text, size_t *fraction)
{
    static const char form[] = "dddd-dd-dd dd:dd:dd.";

    for (size_t i = 0; form[i]; i++) {
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    }
    *fraction = sizeof form - 2;
    return true;
}

/* The text of a cell; the caller frees it. NULL is shown as "-", a time without its fraction. */
static char *cell_text(const cb_rows *rows, size_t row, size_t column)
{
    const char *value = cb_rows_value(rows, row, column);
    char *text = NULL;
    size_t size = 0, fraction = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (value && cb_rows_column_is_bool(rows, column)) {
        fputs(*value == 't' ? "yes" : "no", out);
    } else if (value && is_timestamp(value, &fraction)) {
        const char *zone = value + fraction + 1;
        fprintf(out, "%.*s%s", (int)fraction, value, zone + strspn(zone, "0123456789"));
    } else {
        output_plain(out, value ? value : "-");
    }
    fclose(out);
    return text;
}

/* A table: which columns of the pages, and how wide each is. */
typedef struct {
    cb_rows *const *pages;
    size_t n_pages, n_columns;
    size_t *columns, *widths;
} table;

static bool is_chosen(const char *name, const char *const *names)
{
    for (; names && *names; names++) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

static void choose_columns(table *t, const char *const *names)
{
    for (size_t i = 0; i < cb_rows_columns(t->pages[0]); i++) {
        if (!names || is_chosen(cb_rows_column_name(t->pages[0], i), names))
            t->columns[t->n_columns++] = i;
    }
}

static size_t column_width(const table *t, size_t column)
{
    size_t widest = strlen(cb_rows_column_name(t->pages[0], column));

    for (size_t page = 0; page < t->n_pages; page++) {
        for (size_t row = 0; row < cb_rows_count(t->pages[page]); row++) {
            char *text = cell_text(t->pages[page], row, column);
            size_t width = text ? utf8_count(text) : 0;
            widest = width > widest ? width : widest;
            free(text);
        }
    }
    return widest;
}

static void print_cell(const table *t, size_t i, const char *text)
{
    size_t length = utf8_count(text);
    bool last = i + 1 == t->n_columns;
    int gap = t->widths[i] > length ? (int)(t->widths[i] - length) : 0;

    if (cb_rows_column_is_number(t->pages[0], t->columns[i]))
        printf("%*s%s", gap, "", text);
    else
        printf("%s%*s", text, last ? 0 : gap, "");
    fputs(last ? "\n" : "  ", stdout);
}

static void print_page(const table *t, const cb_rows *rows)
{
    for (size_t row = 0; row < cb_rows_count(rows); row++) {
        for (size_t i = 0; i < t->n_columns; i++) {
            char *text = cell_text(rows, row, t->columns[i]);
            print_cell(t, i, text ? text : "");
            free(text);
        }
    }
}

static void print_table(cb_rows *const *pages, size_t n, const char *const *names)
{
    size_t most = cb_rows_columns(pages[0]) + 1;
    table t = { .pages = pages,
                .n_pages = n,
                .columns = calloc(most, sizeof(size_t)),
                .widths = calloc(most, sizeof(size_t)) };

    if (t.columns && t.widths) {
        choose_columns(&t, names);
        for (size_t i = 0; i < t.n_columns; i++)
            t.widths[i] = column_width(&t, t.columns[i]);
        for (size_t i = 0; i < t.n_columns; i++)
            print_cell(&t, i, cb_rows_column_name(pages[0], t.columns[i]));
        for (size_t page = 0; page < n; page++)
            print_page(&t, pages[page]);
    }
    free(t.columns);
    free(t.widths);
}

void output_pages(const cli *c, cb_rows *const *pages, size_t n, const char *const *columns)
{
    if (c->json) {
        output_json_array(stdout, pages, n);
        putchar('\n');
    } else if (n > 0) {
        print_table(pages, n, columns);
    }
}

void output_rows(const cli *c, const cb_rows *rows, const char *const *columns)
{
    output_pages(c, (cb_rows *const[]){ (cb_rows *)rows }, 1, columns);
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
