/* One look at the fleet. */
#include "fleet_view.h"

#include "grid.h"

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
static char *domains_of(const char *json)
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

static int state_colour(const char *state)
{
    return strcmp(state, "running") == 0 ? GRID_GREEN : GRID_YELLOW;
}

bool fleet_is_silent(const fleet_view *view, size_t row)
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
        char *domains = domains_of(cb_rows_get(rows, i, "domains"));
        char up[24], beat[24];
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "name"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "host"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "profile"));
        grid_add(g, state_colour(state), "%s", state);
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
