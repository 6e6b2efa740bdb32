/* One look at the fleet, and what is wrong with it in words. */
#include "fleet_view.h"

#include "json_text.h"
#include "output.h"

#include <commandbus/process_query.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

bool fleet_look(cb_db *db, fleet_view *view, cb_error *e)
{
    OWNED(cb_rows) workers = NULL;
    OWNED(cb_rows) domains = NULL;
    OWNED(cb_rows) processes = NULL;

    if (!cb_fleet_workers(db, &workers, e) || !cb_fleet_domains(db, &domains, e) ||
        !cb_process_load(db, &processes, e))
        return false;
    fleet_view_done(view);
    view->workers = cb_rows_take(&workers);
    view->domains = cb_rows_take(&domains);
    view->processes = cb_rows_take(&processes);
    return true;
}

void fleet_view_done(fleet_view *view)
{
    cb_rows_free(view->workers);
    cb_rows_free(view->domains);
    cb_rows_free(view->processes);
    *view = (fleet_view){ 0 };
}

const char *fleet_text(const cb_rows *rows, size_t row, const char *column)
{
    const char *value = cb_rows_get(rows, row, column);

    return value ? value : "-";
}

double fleet_number(const cb_rows *rows, size_t row, const char *column)
{
    const char *value = cb_rows_get(rows, row, column);

    return value ? strtod(value, NULL) : 0;
}

const char *fleet_age(double seconds, char *buffer, size_t size)
{
    static const struct {
        double below, unit;
        const char *name;
    } units[] = {
        { 100, 1, "s" },
        { 100 * 60, 60, "m" },
        { 100 * 3600, 3600, "h" },
    };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (seconds < units[i].below) {
            snprintf(buffer, size, "%.0f%s", seconds / units[i].unit, units[i].name);
            return buffer;
        }
    }
    snprintf(buffer, size, "%.0fd", seconds / 86400);
    return buffer;
}

/* "fx 1/2, risk 0/2": what each domain has in flight, of how many slots. The caller frees it. */
static char *fleet_domains_of(const char *json)
{
    char *list = NULL;
    size_t size = 0;
    const char *separator = "";
    FILE *out = open_memstream(&list, &size);
    json_object *domains = json ? json_tokener_parse(json) : NULL;

    if (out && json_object_is_type(domains, json_type_object)) {
        json_object_object_foreach(domains, name, said)
        {
            fprintf(out, "%s%s %lld/%lld", separator, name,
                    (long long)json_object_get_int64(json_object_object_get(said, "in_flight")),
                    (long long)json_object_get_int64(json_object_object_get(said, "slots")));
            separator = ", ";
        }
    }
    json_object_put(domains);
    if (out)
        fclose(out);
    return list;
}

/* The instance has not been heard of for a minute. */
static bool fleet_is_silent(const fleet_view *view, size_t row)
{
    return strcmp(fleet_text(view->workers, row, "state"), "silent") == 0;
}

bool fleet_has_live(const fleet_view *view)
{
    for (size_t row = 0; row < cb_rows_count(view->workers); row++) {
        if (!fleet_is_silent(view, row))
            return true;
    }
    return false;
}

void fleet_print_instances(FILE *out, const fleet_view *view, bool colour)
{
    static const char *const headers[] = { "INSTANCE", "HOST",    "PROFILE",    "STATE",
                                           "VERSION",  ">UPTIME", ">HEARTBEAT", "IN FLIGHT/SLOTS",
                                           NULL };
    OWNED(grid) g = grid_new(headers);
    const cb_rows *rows = view->workers;

    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        if (fleet_is_silent(view, i))
            continue;
        const char *state = fleet_text(rows, i, "state");
        char *domains = fleet_domains_of(cb_rows_get(rows, i, "domains"));
        char up[24], beat[24];
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "name"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "host"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "profile"));
        grid_add(g, strcmp(state, "running") == 0 ? GRID_GREEN : GRID_YELLOW, "%s", state);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "version"));
        grid_add(g, GRID_PLAIN, "%s",
                 fleet_age(fleet_number(rows, i, "uptime_seconds"), up, sizeof up));
        grid_add(g, GRID_PLAIN, "%s ago",
                 fleet_age(fleet_number(rows, i, "heartbeat_age_seconds"), beat, sizeof beat));
        grid_add(g, GRID_PLAIN, "%s", domains && *domains ? domains : "-");
        free(domains);
    }
    if (fleet_has_live(view))
        grid_print(out, g, colour);
}

int fleet_domain_colour(const fleet_view *view, size_t row)
{
    return strcmp(fleet_text(view->domains, row, "problems"), "[]") == 0 ? GRID_PLAIN : GRID_RED;
}

void fleet_print_processes(FILE *out, const fleet_view *view, bool colour)
{
    static const char *const headers[] = { "PROCESS TYPE", "DOMAIN",  ">VERSION", ">DUE",
                                           ">WAITING",     ">IN TSQ", NULL };
    const cb_rows *rows = view->processes;
    OWNED(grid) g = grid_new(headers);

    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        bool waits = cb_rows_get(rows, i, "waiting_seconds") != NULL;
        char age[24];
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "process_type"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "domain"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "version"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "due"));
        grid_add(g, GRID_PLAIN, "%s",
                 waits ? fleet_age(fleet_number(rows, i, "waiting_seconds"), age, sizeof age)
                       : "-");
        grid_add(g, fleet_number(rows, i, "in_tsq") > 0 ? GRID_YELLOW : GRID_PLAIN, "%s",
                 fleet_text(rows, i, "in_tsq"));
    }
    if (cb_rows_count(rows) > 0) {
        fputc('\n', out);
        grid_print(out, g, colour);
    }
}

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

static void problem_write_words(FILE *out, const char *words, const cb_rows *rows, size_t row)
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

/* Called for each thing that is wrong: its kind, the domain or instance, and words for people. */
typedef void problem_fn(const char *kind, const char *subject, const char *words, void *arg);

static void problem_tell(const char *kind, const cb_rows *rows, size_t row, problem_fn *fn,
                         void *arg)
{
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        char *words = NULL;
        size_t size = 0;
        FILE *out = strcmp(kind, problems[i].kind) == 0 ? open_memstream(&words, &size) : NULL;
        if (!out)
            continue;
        problem_write_words(out, problems[i].words, rows, row);
        fclose(out);
        fn(kind, fleet_text(rows, row, "domain"), words ? words : "", arg);
        free(words);
    }
}

static void problem_of_domains(const fleet_view *view, problem_fn *fn, void *arg)
{
    for (size_t row = 0; row < cb_rows_count(view->domains); row++) {
        json_object *kinds = json_tokener_parse(fleet_text(view->domains, row, "problems"));
        size_t n =
            json_object_is_type(kinds, json_type_array) ? json_object_array_length(kinds) : 0;
        for (size_t i = 0; i < n; i++)
            problem_tell(json_object_get_string(json_object_array_get_idx(kinds, i)), view->domains,
                         row, fn, arg);
        json_object_put(kinds);
    }
}

static void problem_each(const fleet_view *view, problem_fn *fn, void *arg)
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
    problem_of_domains(view, fn, arg);
}

typedef struct {
    FILE *out;
    bool colour;
    const char *separator;
} problem_printer;

static void problem_print(const char *kind, const char *subject, const char *words, void *arg)
{
    const problem_printer *p = arg;

    if (strcmp(kind, "SILENT") == 0)
        return; /* problem_print_silent */
    fputs(p->colour ? "\033[31m! " : "! ", p->out);
    output_plain(p->out, subject);
    fputs(": ", p->out);
    output_plain(p->out, words);
    fputs(p->colour ? "\033[0m\n" : "\n", p->out);
}

/* The silent ones of one profile, from the first of them on: "3 of payments-worker: silent for
 * 75s to 2h: a, b, c". */
static void problem_print_silent(const fleet_view *view, size_t first, problem_printer *p)
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
static bool problem_is_first_silent(const fleet_view *view, size_t row)
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
        if (problem_is_first_silent(view, row))
            problem_print_silent(view, row, &p);
    }
    problem_each(view, problem_print, &p);
}

static void problem_write(const char *kind, const char *subject, const char *words, void *arg)
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
    problem_each(view, problem_write, &p);
    fputc(']', out);
}
