/* Tables for people, JSON for programs. */
#include "output.h"

#include "json_text.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The text of a cell; the caller frees it. NULL is shown as "-". */
static char *cell_text(const cb_rows *rows, size_t row, size_t column)
{
    const char *value = cb_rows_value(rows, row, column);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (value && cb_rows_column_is_bool(rows, column))
        fputs(*value == 't' ? "yes" : "no", out);
    else
        output_plain(out, value ? value : "-");
    fclose(out);
    return text;
}

static size_t cell_width(const cb_rows *rows, size_t row, size_t column)
{
    char *text = cell_text(rows, row, column);
    size_t width = text ? utf8_count(text) : 0;
    free(text);
    return width;
}

static void print_padded(const char *text, size_t width, bool to_the_right, bool last)
{
    size_t length = utf8_count(text);
    int gap = width > length ? (int)(width - length) : 0;

    if (to_the_right)
        printf("%*s%s", gap, "", text);
    else
        printf("%s%*s", text, last ? 0 : gap, "");
    fputs(last ? "\n" : "  ", stdout);
}

static void print_row(const cb_rows *rows, size_t row, const size_t *widths, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        char *text = cell_text(rows, row, i);
        print_padded(text ? text : "", widths[i], cb_rows_column_is_number(rows, i),
                     i + 1 == columns);
        free(text);
    }
}

static void print_table(cb_rows *const *pages, size_t n)
{
    size_t columns = cb_rows_columns(pages[0]);
    size_t *widths = calloc(columns + 1, sizeof *widths);

    if (!widths)
        return;
    for (size_t i = 0; i < columns; i++) {
        widths[i] = strlen(cb_rows_column_name(pages[0], i));
        for (size_t page = 0; page < n; page++) {
            for (size_t row = 0; row < cb_rows_count(pages[page]); row++) {
                size_t width = cell_width(pages[page], row, i);
                widths[i] = width > widths[i] ? width : widths[i];
            }
        }
    }
    for (size_t i = 0; i < columns; i++)
        print_padded(cb_rows_column_name(pages[0], i), widths[i],
                     cb_rows_column_is_number(pages[0], i), i + 1 == columns);
    for (size_t page = 0; page < n; page++) {
        for (size_t row = 0; row < cb_rows_count(pages[page]); row++)
            print_row(pages[page], row, widths, columns);
    }
    free(widths);
}

void output_pages(const cli *c, cb_rows *const *pages, size_t n)
{
    if (c->json) {
        output_json_array(stdout, pages, n);
        putchar('\n');
    } else if (n > 0) {
        print_table(pages, n);
    }
}

void output_rows(const cli *c, const cb_rows *rows)
{
    output_pages(c, (cb_rows *const[]){ (cb_rows *)rows }, 1);
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
