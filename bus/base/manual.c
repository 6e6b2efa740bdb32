/* Manual pages from tables. */
#include "manual.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "duration.h"
#include "text.h"
#include "utf8.h"

/* What would become a request, an escape or another character on paper. A hyphen becomes a minus,
 * so that --options can be copied from the page. */
static const char *manual_escape_of(char c)
{
    switch (c) {
    case '\\':
        return "\\(rs";
    case '-':
        return "\\-";
    case '\'':
        return "\\(aq";
    case '`':
        return "\\(ga";
    case '^':
        return "\\(ha";
    case '~':
        return "\\(ti";
    case '"':
        return "\\(dq";
    default:
        return NULL;
    }
}

/* `n` bytes that hold no line end. Other characters than ASCII's go by number, which every roff
 * reads whatever encoding it expects. */
static void manual_put(FILE *out, const char *text, size_t n)
{
    for (const char *end = text + n; text < end;) {
        const char *escape = manual_escape_of(*text);
        uint32_t character = '?';
        size_t length = utf8_decode(text, &character);

        if (escape)
            fputs(escape, out);
        else if (length == 1)
            fputc(*text, out);
        else
            fprintf(out, "\\[u%04X]", (unsigned)character);
        text += length ? length : 1;
    }
}

static void manual_puts(FILE *out, const char *text)
{
    manual_put(out, text, strlen(text));
}

/* A line of text: a dot at its beginning is no request. */
static void manual_line(FILE *out, const char *line, size_t n)
{
    if (n > 0 && *line == '.')
        fputs("\\&", out);
    manual_put(out, line, n);
    fputc('\n', out);
}

void manual_begin(FILE *out, const char *program, const char *version, const char *about)
{
    char line[160];

    snprintf(line, sizeof line, "%s", program);
    for (char *c = line; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    fputs(".TH ", out);
    manual_puts(out, line);
    fprintf(out, " 1 \"\" \"commandbus %s\" \"commandbus\"\n", version);
    fputs(".nh\n.ad l\n", out); /* names are whole, to be found and copied */

    snprintf(line, sizeof line, "%.*s", (int)strcspn(about, ".\n"), about);
    *line = (char)tolower((unsigned char)*line);
    manual_section(out, "NAME");
    manual_puts(out, program);
    fputs(" \\- ", out);
    manual_puts(out, line);
    fputc('\n', out);
}

void manual_section(FILE *out, const char *title)
{
    fputs(".SH \"", out);
    manual_puts(out, title);
    fputs("\"\n", out);
}

void manual_subsection(FILE *out, const char *title)
{
    fputs(".SS \"", out);
    manual_puts(out, title);
    fputs("\"\n", out);
}

/* Filled text. An empty line begins a paragraph, except the last. */
static void manual_fill(FILE *out, const char *text)
{
    while (*text) {
        text += strspn(text, " ");
        size_t n = strcspn(text, "\n");
        if (n > 0)
            manual_line(out, text, n);
        else if (text[1])
            fputs(".PP\n", out);
        text += n + (text[n] == '\n');
    }
}

void manual_text(FILE *out, const char *fmt, ...)
{
    char text[4000];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fputs(".PP\n", out);
    manual_fill(out, text);
}

void manual_example(FILE *out, const char *lines)
{
    fputs(".PP\n.RS 4\n.nf\n", out);
    while (*lines) {
        if (strncmp(lines, "  ", 2) == 0)
            lines += 2;
        size_t n = strcspn(lines, "\n");
        manual_line(out, lines, n);
        lines += n + (lines[n] == '\n');
    }
    fputs(".fi\n.RE\n", out);
}

void manual_synopsis(FILE *out, const char *words, const arg_spec *specs)
{
    fputs(".PP\n\\fB", out);
    manual_puts(out, words);
    fputs("\\fR", out);
    for (const arg_spec *s = specs; s && s->name; s++) {
        if (!s->positional)
            continue;
        fputs(s->required ? " \\fI" : " [\\fI", out);
        manual_puts(out, s->name);
        fputs(s->required ? "\\fR" : "\\fR]", out);
    }
    fputs(" [\\fIoptions\\fR]\n", out);
}

void manual_item(FILE *out, const char *word, const char *value, const char *meaning)
{
    fputs(".TP\n\\fB", out);
    manual_puts(out, word);
    fputs("\\fR", out);
    if (value) {
        fputs(" \\fI", out);
        manual_puts(out, value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    manual_fill(out, meaning);
}

/* What the parser checks and the help leaves out. */
static void manual_limits(const arg_spec *s, char *out, size_t size)
{
    char least[DURATION_SIZE], most[DURATION_SIZE];

    for (const char *const *choice = s->choices; choice && *choice; choice++)
        text_append(out, size, "%s%s", choice == s->choices ? "; one of " : ", ", *choice);
    if (s->kind == ARG_DURATION)
        text_append(out, size, "; %s to %s", duration_format(s->min, least, sizeof least),
                    duration_format(s->max, most, sizeof most));
    else if ((s->kind == ARG_INT || s->kind == ARG_LONG) && s->max < INT_MAX)
        text_append(out, size, "; %lld to %lld", (long long)s->min, (long long)s->max);
    if (s->required && !s->positional)
        text_append(out, size, "; must be given");
}

void manual_options(FILE *out, const arg_spec *specs)
{
    for (const arg_spec *s = specs; s && s->name; s++) {
        char word[64], meaning[800];

        snprintf(word, sizeof word, "%s%s", s->positional ? "" : "--", s->name);
        snprintf(meaning, sizeof meaning, "%s", s->help);
        manual_limits(s, meaning, sizeof meaning);
        manual_item(out, word, s->value, meaning);
    }
}

void manual_exits(FILE *out, const arg_exit *exits)
{
    for (; exits->code; exits++)
        manual_item(out, exits->code, NULL, exits->meaning);
}
