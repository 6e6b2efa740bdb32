/* The reporting set as a worker would have it: loaded, told where its folder and its database are,
 * with its tables and some data; and its commands run one by one on the test's own thread. */
#ifndef TEST_SUPPORT_REPORTS_H
#define TEST_SUPPORT_REPORTS_H

#include <commandbus/host.h>
#include <limits.h>

typedef struct {
    char folder[PATH_MAX / 2]; /* the output folder */
    cb_uuid correlation_id;    /* of every command, as if one process had sent them */
} report_fixture;

extern report_fixture reports;

/* With bus_open, and five accounts of `transactions` transactions each. */
void reports_open(void);
void reports_close(void);

/* What came of a run: "SUCCESS", or "PERMANENT INVALID_DATA"; and its result. */
typedef struct {
    cb_uuid command_id;
    char outcome[64];
    char path[256]; /* "result_path" of the result, or "" */
    char result[512], message[512];
} report_run;

/* Runs a new command of this type. */
report_run report_do(const char *type, const char *data, ...) CB_PRINTF(2, 3);
/* Runs it once more, or for the first time: the id says which command it is. */
report_run report_do_again(cb_uuid id, const cb_host *host, const char *type, const char *data);

/* Query and aggregation of 2023 for these accounts ("\"ACC-001\""): the path of each. */
report_run report_query(const char *accounts);
report_run report_aggregate(const char *accounts);
/* … and then rendered. */
report_run report_render(const char *accounts, const char *output_type);

/* The whole file; the caller frees it. Fails the test when it is not there. */
char *report_read(const char *path);
void report_write(const char *path, const char *text);
/* How many files and folders are in the output folder, hidden ones too. */
int report_files(void);

#endif
