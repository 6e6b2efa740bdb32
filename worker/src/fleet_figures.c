/* The domains of the database in figures, for the metrics. */
#include <commandbus/fleet.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine.h"

static int64_t number(const cb_rows *rows, size_t row, const char *column)
{
    return strtoll(cb_rows_get(rows, row, column), NULL, 10);
}

bool fleet_figures_take(cb_worker *w, cb_db *db, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    if (!cb_domain_figures(db, &rows, e))
        return false;
    size_t n = cb_rows_count(rows);
    metrics_fleet_figure *figures = calloc(n + 1, sizeof *figures);
    if (!figures)
        return cb_fail(e, CB_MEMORY, "no memory for figures");
    for (size_t i = 0; i < n; i++) {
        figures[i] = (metrics_fleet_figure){
            .instances = number(rows, i, "instances"),
            .limit = number(rows, i, "fleet_limit"),
            .leases = number(rows, i, "live_leases"),
            .in_tsq = number(rows, i, "in_tsq"),
            .oldest_due_us = number(rows, i, "oldest_due_us"),
        };
        /* A name of a domain is at most 37 characters. */
        snprintf(figures[i].domain, sizeof figures[i].domain, "%s", cb_rows_get(rows, i, "domain"));
    }
    metrics_fleet_adopt(w->metrics, figures, n);
    return true;
}
