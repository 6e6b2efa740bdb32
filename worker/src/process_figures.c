/* How many processes there are, by type, status and error code: for the metrics. */
#include <commandbus/process_query.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine.h"
#include "processes.h"

/* Error codes are the business's: a scrape has room for so many series. */
enum {
    MOST_FIGURES = 500
};

/* False: it does not fit. Cut, two could be one series. */
static bool copy(char *to, size_t size, const char *from)
{
    return (size_t)snprintf(to, size, "%s", from ? from : "") < size;
}

static int64_t microseconds(const char *seconds)
{
    return (int64_t)(strtod(seconds, NULL) * 1e6);
}

bool figures_take(cb_worker *w, cb_db *db, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    if (!cb_process_figures(db, &rows, e))
        return false;
    metrics_figure *figures = calloc(MOST_FIGURES, sizeof *figures);
    size_t n = 0;
    if (!figures)
        return cb_fail(e, CB_MEMORY, "no memory for figures");
    for (size_t i = 0; i < cb_rows_count(rows) && n < MOST_FIGURES; i++) {
        metrics_figure *f = &figures[n];
        f->count = strtoll(cb_rows_get(rows, i, "processes"), NULL, 10);
        f->oldest_due_us = microseconds(cb_rows_get(rows, i, "oldest_due_seconds"));
        f->oldest_reply_us = microseconds(cb_rows_get(rows, i, "oldest_reply_seconds"));
        n += copy(f->process_type, sizeof f->process_type, cb_rows_get(rows, i, "process_type")) &&
             copy(f->status, sizeof f->status, cb_rows_get(rows, i, "status")) &&
             copy(f->error_code, sizeof f->error_code, cb_rows_get(rows, i, "error_code"));
    }
    metrics_figures_adopt(w->metrics, figures, n);
    return true;
}
