/* commandbus doctor: is all well, and what to do if not. */
#include "cli.h"
#include "output.h"

#include <stdio.h>
#include <string.h>

/* The colour of a status, 0 for none. */
static int doctor_colour(const char *status)
{
    if (strcmp(status, "ok") == 0)
        return 32;
    return strcmp(status, "warn") == 0 ? 33 : 31;
}

static const char *doctor_text(const cb_rows *rows, size_t row, const char *column)
{
    const char *value = cb_rows_get(rows, row, column);
    return value ? value : "";
}

static void doctor_print_check(const cb_rows *rows, size_t row, int width, bool colour)
{
    const char *status = doctor_text(rows, row, "status"),
               *advice = doctor_text(rows, row, "advice");

    if (colour)
        printf("\033[%dm%-4s\033[0m", doctor_colour(status), status);
    else
        printf("%-4s", status);
    printf("  %-*s  ", width, doctor_text(rows, row, "check_name"));
    output_plain(stdout, doctor_text(rows, row, "detail"));
    if (*advice && strcmp(status, "ok") != 0) {
        printf("\n      %-*s  -> ", width, "");
        output_plain(stdout, advice);
    }
    putchar('\n');
}

static void doctor_print(const cb_rows *rows)
{
    bool colour = output_has_colour(stdout);
    size_t width = 0;

    for (size_t row = 0; row < cb_rows_count(rows); row++) {
        size_t length = strlen(doctor_text(rows, row, "check_name"));
        width = length > width ? length : width;
    }
    for (size_t row = 0; row < cb_rows_count(rows); row++)
        doctor_print_check(rows, row, (int)width, colour);
}

static int doctor_run(cli *c, void *args)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    size_t failed = 0, warned = 0;

    (void)args;
    if (!cli_connect(c, false, &e) || !cb_doctor(c->db, &rows, &e))
        return cli_fail(c, &e);
    if (c->json)
        output_rows(c, rows, NULL);
    else
        doctor_print(rows);

    for (size_t row = 0; row < cb_rows_count(rows); row++) {
        failed += strcmp(doctor_text(rows, row, "status"), "fail") == 0;
        warned += strcmp(doctor_text(rows, row, "status"), "warn") == 0;
    }
    fflush(stdout);
    cli_note(c, "%zu checks: %zu warn, %zu fail", cb_rows_count(rows), warned, failed);
    return failed ? EXIT_REFUSED : EXIT_OK;
}

const cli_command doctor_command = {
    .verb = "doctor",
    .summary = "Checks extension, schema, roles, queues, vacuum and clocks",
    .details = "Each check is ok, warn or fail, with what to do. Exit code 1 when one fails.\n",
    .example = "  commandbus doctor --json | jq '.[] | select(.status != \"ok\")'\n",
    .run = doctor_run,
};
