/* Health of the whole. Each group of checks is a statement of its own, so that one that cannot run
 * (no schema yet, no right) becomes a line of the report and not the end of it. */
#include <commandbus/migrate.h>
#include <commandbus/query.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cb_sql.h"
#include "fail.h"
#include "rows.h"
#include "schema.h"

/* The columns of every statement of queries/doctor.sql. */
enum {
    CHECK_NAME,
    STATUS,
    DETAIL,
    ADVICE,
    COLUMNS,
};

static const char *const column_names[COLUMNS] = { "check_name", "status", "detail", "advice" };

/* The checks that need the bus's schema. */
static const struct {
    const char *name;
    const char *const sql;
} checks[] = {
    { "queues", cb_sql_doctor_queues },       { "commands", cb_sql_doctor_commands },
    { "processes", cb_sql_doctor_processes }, { "fleet", cb_sql_doctor_fleet },
    { "vacuum", cb_sql_doctor_vacuum },
};

static PGresult *report_new(void)
{
    enum {
        OID_TEXT = 25
    };
    PGresAttDesc columns[COLUMNS] = { 0 };
    PGresult *report = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

    for (int i = 0; i < COLUMNS; i++) {
        columns[i].name = (char *)column_names[i]; /* libpq copies it. */
        columns[i].typid = OID_TEXT;
        columns[i].typlen = -1;
    }
    if (report && !PQsetResultAttrs(report, COLUMNS, columns)) {
        PQclear(report);
        return NULL;
    }
    return report;
}

static bool add_row(PGresult *report, const char *const values[COLUMNS], cb_error *e)
{
    int row = PQntuples(report);

    for (int i = 0; i < COLUMNS; i++) {
        int length = values[i] ? (int)strlen(values[i]) : -1;
        if (!PQsetvalue(report, row, i, (char *)values[i], length))
            return fail_memory(e);
    }
    return true;
}

static bool add_rows(PGresult *report, const PGresult *from, cb_error *e)
{
    for (int row = 0; row < PQntuples(from); row++) {
        const char *values[COLUMNS];
        for (int i = 0; i < COLUMNS; i++)
            values[i] = PQgetisnull(from, row, i) ? NULL : PQgetvalue(from, row, i);
        if (!add_row(report, values, e))
            return false;
    }
    return true;
}

/* What stopped a check is itself a finding, unless the connection is gone. */
static bool add_failure(PGresult *report, const char *check, const cb_error *why, cb_error *e)
{
    const char *values[COLUMNS] = { check, why->code == CB_DENIED ? "warn" : "fail", why->message,
                                    *why->hint ? why->hint : NULL };

    if (why->code == CB_LOST) {
        if (e)
            *e = *why;
        return false;
    }
    return add_row(report, values, e);
}

static bool add_check(cb_db *db, PGresult *report, const char *check, const char *sql, cb_error *e)
{
    OWNED(PGresult) found = NULL;
    cb_error why = { 0 };

    if (!db_read_guarded(db, sql, NULL, &found, &why))
        return add_failure(report, check, &why, e);
    return add_rows(report, found, e);
}

static double now_seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The server's clock against ours in the middle of the round trip. */
static bool add_clock(cb_db *db, PGresult *report, cb_error *e)
{
    OWNED(PGresult) answer = NULL;
    char detail[128];
    cb_error why = { 0 };
    double before = now_seconds(CLOCK_REALTIME);

    if (!db_read_guarded(db, cb_sql_server_clock, NULL, &answer, &why))
        return add_failure(report, "clock", &why, e);
    double after = now_seconds(CLOCK_REALTIME);
    double ahead = (double)strtoll(PQgetvalue(answer, 0, 0), NULL, 10) / 1e6 - (before + after) / 2;
    bool far = ahead > 1 || ahead < -1;

    snprintf(detail, sizeof detail, "the server's clock is %.0f ms %s this machine's",
             (ahead < 0 ? -ahead : ahead) * 1e3, ahead < 0 ? "behind" : "ahead of");
    const char *values[COLUMNS] = {
        "clock", far ? "warn" : "ok", detail,
        far ? "Leases and timers use the server's clock alone, but logs "
              "of the two will not match: check NTP on both."
            : NULL
    };
    return add_row(report, values, e);
}

/* Each file that the database has otherwise. *any says that there is one. */
static bool add_differences(cb_db *db, PGresult *report, bool *any, cb_error *e)
{
    const schema_files here = schema_of_bus();
    OWNED_SCHEMA_STATE(bus) = { 0 };
    cb_error why = { 0 };
    bool fine = true;

    *any = false;
    if (!schema_read(db, here.component, &bus, &why))
        return true; /* told by who asked before */
    for (size_t i = 0; fine && (i = schema_next_difference(&bus, &here, i)) < here.n; i++) {
        schema_fail_difference(&bus, &here, i, &why);
        fine = add_failure(report, "schema", &why, e);
        *any = true;
    }
    return fine;
}

/* Sets *usable when the checks that need the schema can run. */
static bool add_schema(cb_db *db, PGresult *report, bool *usable, cb_error *e)
{
    cb_error why = { 0 };
    char detail[64];
    const char *values[COLUMNS] = { "schema", "ok", detail, NULL };

    snprintf(detail, sizeof detail, "this binary's version is %d, the database fits",
             cb_schema_version());
    *usable = cb_db_check_schema(db, &why);
    if (*usable)
        return add_row(report, values, e);
    bool differs = false;
    if (why.code == CB_SCHEMA && !add_differences(db, report, &differs, e))
        return false;
    return differs || add_failure(report, "schema", &why, e);
}

bool cb_doctor(cb_db *db, cb_rows **ret, cb_error *e)
{
    OWNED(PGresult) report = report_new();
    bool usable = false;

    if (!report)
        return fail_memory(e);
    if (!db_is_ready(db, e) || !add_check(db, report, "server", cb_sql_doctor_server, e) ||
        !add_clock(db, report, e) ||
        !add_check(db, report, "transactions", cb_sql_doctor_transactions, e) ||
        !add_schema(db, report, &usable, e))
        return false;
    for (size_t i = 0; usable && i < sizeof checks / sizeof *checks; i++) {
        if (!add_check(db, report, checks[i].name, checks[i].sql, e))
            return false;
    }
    return rows_adopt(PGresult_take(&report), ret, e);
}
