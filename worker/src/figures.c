/* Figures of the database, for the metrics: its processes by type, status and error code, and by
 * type, status and what they wait for; and its domains. */
#include <commandbus/fleet.h>
#include <commandbus/process_query.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fail.h"

/* ---- processes ---- */

/* Error codes are the business's, names of waits may be made at run time: a scrape has room for so
 * many series. */
enum {
    MOST_FIGURES = 500
};

/* False: it does not fit. Cut, two could be one series. */
static bool copy(char *to, size_t size, const char *from)
{
    return (size_t)snprintf(to, size, "%s", from ? from : "") < size;
}

static int64_t microseconds(const cb_rows *rows, size_t row, const char *column)
{
    return (int64_t)(strtod(cb_rows_get(rows, row, column), NULL) * 1e6);
}

static bool are_alike(const metrics_figure *a, const metrics_figure *b)
{
    return strcmp(a->process_type, b->process_type) == 0 && strcmp(a->status, b->status) == 0 &&
           strcmp(a->by, b->by) == 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Adds a row to the figure that it belongs to, if there is room for that. */
static void count(metrics_figure *figures, size_t *n, const metrics_figure *row)
{
    size_t i = 0;

    while (i < *n && !are_alike(&figures[i], row))
        i++;
    if (i == MOST_FIGURES)
        return;
    if (i == *n) {
        figures[(*n)++] = *row;
        return;
    }
    figures[i].count += row->count;
    figures[i].oldest_us = larger(figures[i].oldest_us, row->oldest_us);
    figures[i].oldest_due_us = larger(figures[i].oldest_due_us, row->oldest_due_us);
    figures[i].oldest_reply_us = larger(figures[i].oldest_reply_us, row->oldest_reply_us);
}

static bool take_by(cb_worker *w, const cb_rows *rows, figures_by by, cb_error *e)
{
    static const char *const columns[FIGURES] = {
        [FIGURES_BY_CODE] = "error_code", [FIGURES_BY_WAIT] = "current_wait"
    };
    metrics_figure *figures = calloc(MOST_FIGURES, sizeof *figures);
    size_t n = 0;

    if (!figures)
        return fail_memory(e);
    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        metrics_figure row = {
            .count = strtoll(cb_rows_get(rows, i, "processes"), NULL, 10),
            .oldest_us = microseconds(rows, i, "oldest_seconds"),
            .oldest_due_us = microseconds(rows, i, "oldest_due_seconds"),
            .oldest_reply_us = microseconds(rows, i, "oldest_reply_seconds"),
        };
        if (copy(row.process_type, sizeof row.process_type, cb_rows_get(rows, i, "process_type")) &&
            copy(row.status, sizeof row.status, cb_rows_get(rows, i, "status")) &&
            copy(row.by, sizeof row.by, cb_rows_get(rows, i, columns[by])))
            count(figures, &n, &row);
    }
    metrics_figures_adopt(w->metrics, by, figures, n);
    return true;
}

bool process_figures_take(cb_worker *w, cb_db *db, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    return cb_process_figures(db, &rows, e) && take_by(w, rows, FIGURES_BY_CODE, e) &&
           take_by(w, rows, FIGURES_BY_WAIT, e);
}

/* ---- domains ---- */

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
        return fail_memory(e);
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
