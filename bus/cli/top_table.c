/* The domains of `commandbus top`. */
#include "top_table.h"

#include "grid.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

enum {
    BAR = 10,
    LEVELS = 8
};

/* True when the terminal's characters are UTF-8's. */
static bool has_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}

/* The last depths as a small line, each as high as its part of the deepest. */
static void add_trend(grid *g, const domain_rate *d)
{
    static const char *const blocks[LEVELS] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const marks[LEVELS] = { "_", ".", ",", "-", "~", "=", "+", "#" };
    const char *const *levels = has_utf8() ? blocks : marks;
    char line[RATES_TREND * 4 + 1] = "";
    int64_t most = 1;

    for (size_t i = 0; d && i < d->n_trend; i++)
        most = d->trend[i] > most ? d->trend[i] : most;
    for (size_t i = 0; d && i < d->n_trend; i++)
        strcat(line, levels[d->trend[i] * (LEVELS - 1) / most]);
    grid_add(g, GRID_PLAIN, "%s", line);
}

static void add_rate(grid *g, const domain_rate *d, double rate)
{
    if (d && d->known)
        grid_add(g, GRID_PLAIN, rate < 100 ? "%.1f" : "%.0f", rate);
    else
        grid_add(g, GRID_PLAIN, "-");
}

/* "[####......] 4/6 limit": leases of the limit, or of the slots. */
static void add_bar(grid *g, const cb_rows *rows, size_t row)
{
    double leases = fleet_number(rows, row, "live_leases"),
           limit = fleet_number(rows, row, "fleet_limit"), slots = fleet_number(rows, row, "slots");
    double most = limit > 0 ? limit : slots;
    double part = most > 0 ? leases / most : leases > 0;
    char bar[BAR + 1];

    for (int i = 0; i < BAR; i++)
        bar[i] = i < part * BAR ? '#' : '.';
    bar[BAR] = '\0';
    grid_add(g, part > 1 ? GRID_RED : GRID_PLAIN, "[%s] %.0f/%.0f %s", bar, leases, most,
             limit > 0 ? "limit" : "slots");
}

void top_print_domains(FILE *out, const fleet_view *view, const rates *r, bool colour)
{
    static const char *const headers[] = { "DOMAIN",     ">IN/S", ">OUT/S",   ">DEPTH",
                                           "TREND",      ">DUE",  ">WAITING", "LIVE LEASES",
                                           ">INSTANCES", NULL };
    const cb_rows *rows = view->domains;
    OWNED(grid) g = grid_new(headers);

    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        const domain_rate *d = rates_find(r, fleet_text(rows, i, "domain"));
        bool waits = cb_rows_get(rows, i, "waiting_seconds") != NULL;
        char age[24];
        grid_add(g, fleet_domain_colour(view, i), "%s", fleet_text(rows, i, "domain"));
        add_rate(g, d, d ? d->in : 0);
        add_rate(g, d, d ? d->out : 0);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "depth"));
        add_trend(g, d);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "visible"));
        grid_add(g, GRID_PLAIN, "%s",
                 waits ? fleet_age(fleet_number(rows, i, "waiting_seconds"), age, sizeof age)
                       : "-");
        add_bar(g, rows, i);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "instances"));
    }
    grid_print(out, g, colour);
}

void top_write_rows(FILE *out, const cb_rows *rows, const rates *r)
{
    fputc('[', out);
    for (size_t row = 0; row < cb_rows_count(rows); row++) {
        const domain_rate *d = r ? rates_find(r, fleet_text(rows, row, "domain")) : NULL;
        fputs(row > 0 ? ",{" : "{", out);
        output_json_members(out, rows, row);
        if (d && d->known)
            fprintf(out, ",\"in_per_second\":%.3f,\"out_per_second\":%.3f", d->in, d->out);
        else if (r)
            fputs(",\"in_per_second\":null,\"out_per_second\":null", out);
        fputc('}', out);
    }
    fputc(']', out);
}
