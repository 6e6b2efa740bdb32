/* What is wrong with the fleet, in words. */
#include "fleet_problems.h"

#include "json_text.h"
#include "output.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* What can be wrong with a domain; {column} stands for its value. */
static const struct {
    const char *kind, *words;
} problems[] = {
    { "LEASES_OVER_LIMIT", "{live_leases} live leases, more than the fleet-limit {fleet_limit}" },
    { "LEASES_OVER_SLOTS",
      "{live_leases} live leases, more than the {slots} slots of {instances} live instances" },
    { "NOBODY_SERVES", "{visible} messages are due and no live instance serves this domain" },
    { "QUEUE_MISSING", "the queue is missing: commandbus queue create {domain}" },
};

static void write_words(FILE *out, const char *words, const cb_rows *rows, size_t row)
{
    for (const char *c = words; *c; c++) {
        char column[32];
        if (*c != '{') {
            fputc(*c, out);
            continue;
        }
        size_t length = strcspn(c, "}");
        snprintf(column, sizeof column, "%.*s", (int)length - 1, c + 1);
        fputs(fleet_text(rows, row, column), out);
        c += length;
    }
}

static void tell(const char *kind, const cb_rows *rows, size_t row, fleet_problem_fn *fn, void *arg)
{
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        char *words = NULL;
        size_t size = 0;
        FILE *out = strcmp(kind, problems[i].kind) == 0 ? open_memstream(&words, &size) : NULL;
        if (!out)
            continue;
        write_words(out, problems[i].words, rows, row);
        fclose(out);
        fn(kind, fleet_text(rows, row, "domain"), words ? words : "", arg);
        free(words);
    }
}

static void each_domain_problem(const fleet_view *view, fleet_problem_fn *fn, void *arg)
{
    for (size_t row = 0; row < cb_rows_count(view->domains); row++) {
        json_object *kinds = json_tokener_parse(fleet_text(view->domains, row, "problems"));
        size_t n =
            json_object_is_type(kinds, json_type_array) ? json_object_array_length(kinds) : 0;
        for (size_t i = 0; i < n; i++)
            tell(json_object_get_string(json_object_array_get_idx(kinds, i)), view->domains, row,
                 fn, arg);
        json_object_put(kinds);
    }
}

void fleet_each_problem(const fleet_view *view, fleet_problem_fn *fn, void *arg)
{
    for (size_t row = 0; row < cb_rows_count(view->workers); row++) {
        char words[64], age[24];
        if (!fleet_is_silent(view, row))
            continue;
        snprintf(
            words, sizeof words, "silent for %s",
            fleet_age(fleet_number(view->workers, row, "heartbeat_age_seconds"), age, sizeof age));
        fn("SILENT", fleet_text(view->workers, row, "worker"), words, arg);
    }
    each_domain_problem(view, fn, arg);
}

typedef struct {
    FILE *out;
    bool colour;
    const char *separator;
} problem_printer;

static void print_problem(const char *kind, const char *subject, const char *words, void *arg)
{
    const problem_printer *p = arg;

    if (strcmp(kind, "SILENT") == 0)
        return; /* print_silent */
    fputs(p->colour ? "\033[31m! " : "! ", p->out);
    output_plain(p->out, subject);
    fputs(": ", p->out);
    output_plain(p->out, words);
    fputs(p->colour ? "\033[0m\n" : "\n", p->out);
}

/* The silent ones of one profile, from the first of them on: "3 of payments-worker: silent for 75s to 2h: a, b, c". */
static void print_silent(const fleet_view *view, size_t first, problem_printer *p)
{
    enum {
        MOST_NAMES = 5
    };
    const cb_rows *rows = view->workers;
    const char *profile = fleet_text(rows, first, "profile");
    double least = fleet_number(rows, first, "heartbeat_age_seconds"), most = least;
    char shortest[24], longest[24], *names = NULL;
    size_t n = 0, size = 0;
    FILE *list = open_memstream(&names, &size);

    for (size_t row = first; list && row < cb_rows_count(rows); row++) {
        double age = fleet_number(rows, row, "heartbeat_age_seconds");
        if (!fleet_is_silent(view, row) || strcmp(fleet_text(rows, row, "profile"), profile) != 0)
            continue;
        least = age < least ? age : least;
        most = age > most ? age : most;
        if (n++ < MOST_NAMES)
            fprintf(list, "%s%s", n > 1 ? ", " : "", fleet_text(rows, row, "worker"));
    }
    if (list && n > MOST_NAMES)
        fprintf(list, " and %zu more", n - MOST_NAMES);
    if (list)
        fclose(list);
    fleet_age(least, shortest, sizeof shortest);
    fleet_age(most, longest, sizeof longest);
    fputs(p->colour ? "\033[31m! " : "! ", p->out);
    if (n == 1) {
        output_plain(p->out, names ? names : "");
        fprintf(p->out, ": silent for %s", shortest);
    } else {
        fprintf(p->out, "%zu of ", n);
        output_plain(p->out, strcmp(profile, "-") == 0 ? "no profile" : profile);
        fprintf(p->out, ": silent for %s%s%s: ", shortest,
                strcmp(shortest, longest) == 0 ? "" : " to ",
                strcmp(shortest, longest) == 0 ? "" : longest);
        output_plain(p->out, names ? names : "");
    }
    fputs(p->colour ? "\033[0m\n" : "\n", p->out);
    free(names);
}

/* No silent one of the same profile comes before it. */
static bool is_first_silent(const fleet_view *view, size_t row)
{
    const char *profile = fleet_text(view->workers, row, "profile");

    if (!fleet_is_silent(view, row))
        return false;
    for (size_t before = 0; before < row; before++) {
        if (fleet_is_silent(view, before) &&
            strcmp(fleet_text(view->workers, before, "profile"), profile) == 0)
            return false;
    }
    return true;
}

void fleet_print_problems(FILE *out, const fleet_view *view, bool colour)
{
    problem_printer p = { .out = out, .colour = colour };

    for (size_t row = 0; row < cb_rows_count(view->workers); row++) {
        if (is_first_silent(view, row))
            print_silent(view, row, &p);
    }
    fleet_each_problem(view, print_problem, &p);
}

static void write_problem(const char *kind, const char *subject, const char *words, void *arg)
{
    problem_printer *p = arg;

    fprintf(p->out, "%s{\"problem\":", p->separator);
    json_write_string(p->out, kind);
    fputs(",\"subject\":", p->out);
    json_write_string(p->out, subject);
    fputs(",\"message\":", p->out);
    json_write_string(p->out, words);
    fputc('}', p->out);
    p->separator = ",";
}

void fleet_write_problems(FILE *out, const fleet_view *view)
{
    problem_printer p = { .out = out, .separator = "" };

    fputc('[', out);
    fleet_each_problem(view, write_problem, &p);
    fputc(']', out);
}
