/* The reporting set as a worker would have it. */
#include "reports.h"
#include "test_handler.h"

#include "expect.h"
#include "fixture.h"

#include <commandbus/migrate.h>
#include <commandbus/set.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

report_fixture reports;
static cb_set *set;

void reports_open(void)
{
    char sql[PATH_MAX];
    cb_migrate_report done;
    cb_error e = { 0 };

    bus_open();
    test_exec(bus.conn, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO "
                        "commandbus_owner', current_database()); END $$");
    snprintf(sql, sizeof sql, "%s/handlers/reporting/sql", getenv("COMMANDBUS_SOURCE_DIR"));
    expect_ok(cb_migrate_set(bus.db, "reporting", sql, &done, &e), e);
    test_exec(bus.conn, "SELECT reporting.seed(5, 400)");

    snprintf(reports.folder, sizeof reports.folder, "/tmp/reports-XXXXXX");
    cr_assert(mkdtemp(reports.folder));
    reports.correlation_id = cb_uuid_new();
    const cb_setting folder = { "output-folder", reports.folder };
    const cb_module_config config = { bus.conninfo, &folder, 1 };
    expect_ok(cb_set_load_with(getenv("COMMANDBUS_MODULES_DIR"), "reporting", &config, &set, &e),
              e);
}

static int drop(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
    (void)status;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void reports_close(void)
{
    cb_set_free(set);
    set = NULL;
    nftw(reports.folder, drop, 8, FTW_DEPTH | FTW_PHYS);
    bus_close();
}

static void keep_path(report_run *run)
{
    const char *from = strstr(run->result, "\"result_path\":\"");

    if (from) {
        from += strlen("\"result_path\":\"");
        snprintf(run->path, sizeof run->path, "%.*s", (int)strcspn(from, "\""), from);
    }
}

report_run report_do_again(cb_uuid id, const cb_host *host, const char *type, const char *data)
{
    const cb_command command = { .command_id = id,
                                 .correlation_id = reports.correlation_id,
                                 .domain = "reporting",
                                 .command_type = type,
                                 .data = data,
                                 .lease_no = 1,
                                 .attempt = 1,
                                 .max_attempts = 3,
                                 .timeout_seconds = 30 };
    report_run run = { .command_id = id };
    OWNED(cb_context) ctx = NULL;
    cb_settlement out;
    cb_error e = { 0 };

    expect_ok(cb_context_open(&command, host, NULL, &ctx, &e), e);
    cb_context_run(ctx, test_handler(set, type), 0, &out);
    snprintf(run.outcome, sizeof run.outcome, "%s%s%s", cb_outcome_name(out.outcome),
             out.error_code ? " " : "", out.error_code ? out.error_code : "");
    snprintf(run.result, sizeof run.result, "%s", out.result ? out.result : "");
    snprintf(run.message, sizeof run.message, "%s", out.error_message ? out.error_message : "");
    keep_path(&run);
    return run;
}

report_run report_do(const char *type, const char *data, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, data);
    cr_assert_geq(vasprintf(&text, data, args), 0);
    va_end(args);
    report_run run = report_do_again(cb_uuid_new(), NULL, type, text);
    free(text);
    return run;
}

static report_run expect_success(report_run run)
{
    cr_assert_str_eq(run.outcome, "SUCCESS", "%s: %s", run.outcome, run.message);
    return run;
}

report_run report_query(const char *accounts)
{
    return expect_success(report_do("StatementQuery",
                                    "{\"from_date\": \"2023-01-10\", \"to_date\": \"2023-12-20\", "
                                    "\"account_list\": [%s]}",
                                    accounts));
}

report_run report_aggregate(const char *accounts)
{
    return expect_success(report_do("StatementDataAggregation", "{\"data_path\": \"%s\"}",
                                    report_query(accounts).path));
}

report_run report_render(const char *accounts, const char *output_type)
{
    return expect_success(report_do("StatementRender",
                                    "{\"aggregated_data_path\": \"%s\", \"output_type\": \"%s\"}",
                                    report_aggregate(accounts).path, output_type));
}

static FILE *open_file(const char *path, const char *mode)
{
    char full[PATH_MAX];

    snprintf(full, sizeof full, "%s/%s", reports.folder, path);
    FILE *file = fopen(full, mode);
    cr_assert(file, "%s is not there", full);
    return file;
}

char *report_read(const char *path)
{
    FILE *file = open_file(path, "r");
    char *text = NULL;
    size_t size = 0;
    ssize_t n = getdelim(&text, &size, EOF, file);

    fclose(file);
    cr_assert_geq(n, 0, "%s is empty", path);
    return text;
}

void report_write(const char *path, const char *text)
{
    FILE *file = open_file(path, "w");

    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static int n_files;

static int count(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
    (void)path;
    (void)status;
    (void)flag;
    n_files += ftw->level > 0;
    return 0;
}

int report_files(void)
{
    n_files = 0;
    nftw(reports.folder, count, 8, FTW_PHYS);
    return n_files;
}
