/* What a domain has to do and what it has for that, measured. */
#include "plan_load.h"

#include "duration.h"
#include "fail.h"
#include "fleet_view.h"
#include "plan_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool fail_unknown(const char *domain, cb_error *e)
{
    cb_fail(e, CB_UNKNOWN_DOMAIN, "domain '%.80s' is not registered in this database", domain);
    return fail_hint(
        e, "Check the spelling (commandbus queue list), or plan without --from-database.");
}

/* A number of slots or instances; what no fleet can have, because a heartbeat says what it likes, is 0. */
static int small_number(const cb_rows *rows, size_t row, const char *column)
{
    double value = fleet_number(rows, row, column);

    return value >= 0 && value <= PLAN_MOST_LIMIT ? (int)value : 0;
}

static bool look_at_fleet(cb_db *db, const char *domain, plan_load *ret, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    if (!cb_fleet_domains(db, &rows, e))
        return false;
    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        if (strcmp(fleet_text(rows, i, "domain"), domain) != 0)
            continue;
        ret->instances = small_number(rows, i, "instances");
        ret->slots_each = small_number(rows, i, "slots_each");
        ret->slots = small_number(rows, i, "slots");
        ret->fleet_limit = small_number(rows, i, "fleet_limit");
        ret->depth = (int64_t)fleet_number(rows, i, "depth");
        return true;
    }
    return fail_unknown(domain, e);
}

bool plan_measure(cb_db *db, const char *domain, int64_t window_ms, plan_load *ret, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;
    char window[DURATION_SIZE];

    *ret = (plan_load){ 0 };
    duration_interval(window_ms, window, sizeof window);
    if (!cb_domain_load(db, domain, window, &rows, e))
        return false;
    if (cb_rows_count(rows) == 0)
        return fail_unknown(domain, e);
    ret->seconds = fleet_number(rows, 0, "seconds");
    ret->arrivals = (int64_t)fleet_number(rows, 0, "arrivals");
    ret->retries = (int64_t)fleet_number(rows, 0, "retries");
    ret->busiest = fleet_number(rows, 0, "in_busiest_minute") / fmin(ret->seconds, 60);
    ret->runs = (int64_t)fleet_number(rows, 0, "runs");
    ret->mean_seconds = fleet_number(rows, 0, "mean_seconds");
    if (ret->mean_seconds > 0)
        ret->variation = fleet_number(rows, 0, "deviation_seconds") / ret->mean_seconds;
    return look_at_fleet(db, domain, ret, e);
}
