/* The commands of the reporting set with data that nobody should send, files that somebody has
 * touched, and runs that are cut off. Nothing leads out of the output folder, and nothing
 * half-written is ever seen. */
#include "expect.h"
#include "fixture.h"
#include "reports.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(reporting_hostile, .init = reports_open, .fini = reports_close);

#define PERIOD "\"from_date\": \"2023-01-01\", \"to_date\": \"2023-01-31\""

static void expect_report_refused(const char *type, const char *data, const char *outcome)
{
    report_run run = report_do_again(cb_uuid_new(), NULL, type, data);

    cr_expect_str_eq(run.outcome, outcome, "%s %.200s: %s %s", type, data, run.outcome,
                     run.message);
    cr_expect_eq(report_files(), 0, "%s %.200s has left a file", type, data);
}

/* PM.7 */
Test(reporting_hostile, queries_that_make_no_sense_are_refused)
{
    static const struct {
        const char *data, *code;
    } cases[] = {
        { "{}", "INVALID_PERIOD" },
        { "{\"from_date\": 20230101}", "INVALID_DATA" },
        { "{" PERIOD "}", "INVALID_DATA" },
        { "{" PERIOD ", \"account_list\": \"ACC-001\"}", "INVALID_DATA" },
        { "{" PERIOD ", \"account_list\": {}}", "INVALID_DATA" },
        { "{" PERIOD ", \"account_list\": []}", "INVALID_DATA" },
        { "{" PERIOD ", \"account_list\": [7]}", "INVALID_DATA" },
        { "{" PERIOD ", \"account_list\": [null]}", "INVALID_ACCOUNT" },
        { "{" PERIOD ", \"account_list\": [\"ACC-001\", \"ACC-001\"]}", "INVALID_ACCOUNT" },
        { "{\"from_date\": \"2023-02-01\", \"to_date\": \"2023-01-31\", \"account_list\": [\"ACC-001\"]}",
          "INVALID_PERIOD" },
        { "{\"from_date\": \"2023-02-29\", \"to_date\": \"2023-12-31\", \"account_list\": [\"ACC-001\"]}",
          "INVALID_DATA" },
        { "{\"from_date\": \"2023-1-1\", \"to_date\": \"2023-12-31\", \"account_list\": [\"ACC-001\"]}",
          "INVALID_DATA" },
        { "{\"from_date\": \"now\", \"to_date\": \"infinity\", \"account_list\": [\"ACC-001\"]}",
          "INVALID_DATA" },
        { "{\"from_date\": \"0000-01-01\", \"to_date\": \"2023-12-31\", \"account_list\": [\"ACC-001\"]}",
          "INVALID_DATA" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        char outcome[64];
        snprintf(outcome, sizeof outcome, "PERMANENT %s", cases[i].code);
        expect_report_refused("StatementQuery", cases[i].data, outcome);
    }
}

/* S2: from_date and to_date are dates, account_list is a list of texts. */
Test(reporting_hostile, what_is_not_of_its_type_is_named_by_its_path)
{
    static const struct {
        const char *data, *said;
    } cases[] = {
        { "{\"from_date\": \"2023-02-29\", \"to_date\": \"2023-12-31\"}",
          "field 'from_date' of query_request must be a date" },
        { "{" PERIOD ", \"account_list\": [\"ACC-001\", \"ACC-002\", {}]}",
          "field 'account_list[2]' of query_request must be text" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        report_run run = report_do_again(cb_uuid_new(), NULL, "StatementQuery", cases[i].data);
        cr_expect_str_eq(run.outcome, "PERMANENT INVALID_DATA");
        cr_expect(strstr(run.message, cases[i].said), "%s", run.message);
    }
}

Test(reporting_hostile, invalid_account_numbers_are_refused_and_not_repeated)
{
    static const char *const accounts[] = {
        "",       "../x", "a/b",   "/etc/passwd",    "..",        ".",          "-rf",
        "A B",    "a,b",  "{a}",   "a\\\"b",         "a\\u0000b", "\\u0000",    "\xc3\xa4",
        "%2e%2e", "a\\n", "'; --", "\\ud83d\\ude00", "a\\\\b",    "\\u202eabc",
    };

    for (size_t i = 0; i < CB_COUNT(accounts); i++) {
        char data[256];
        snprintf(data, sizeof data, "{" PERIOD ", \"account_list\": [\"%s\"]}", accounts[i]);
        report_run run = report_do_again(cb_uuid_new(), NULL, "StatementQuery", data);
        cr_expect(strcmp(run.outcome, "PERMANENT INVALID_ACCOUNT") == 0 ||
                      strcmp(run.outcome, "PERMANENT INVALID_DATA") == 0,
                  "'%s': %s", accounts[i], run.outcome);
        /* What the bus refuses itself is said in its words. */
        cr_expect(strlen(accounts[i]) < 4 || strstr(accounts[i], "u0000") ||
                      !strstr(run.message, accounts[i]),
                  "%s", run.message);
        cr_expect_eq(report_files(), 0);
    }
}

Test(reporting_hostile, lists_and_names_that_are_too_long_are_refused)
{
    char *data = calloc(1, 64 * 1024), *end;

    end = stpcpy(data, "{" PERIOD ", \"account_list\": [\"A0\"");
    for (int i = 1; i <= 100; i++)
        end += sprintf(end, ", \"A%d\"", i);
    strcpy(end, "]}");
    expect_report_refused("StatementQuery", data, "PERMANENT TOO_MANY_ACCOUNTS");

    end = stpcpy(data, "{" PERIOD ", \"account_list\": [\"");
    memset(end, 'A', 35);
    strcpy(end + 35, "\"]}");
    expect_report_refused("StatementQuery", data, "PERMANENT INVALID_ACCOUNT");
    memset(end, 'A', 34);
    strcpy(end + 34, "\"]}");
    expect_report_refused("StatementQuery", data, "BUSINESS_RULE UNKNOWN_ACCOUNT");
    free(data);
}

/* The path of each command that takes one, and a file that must survive. */
static const struct {
    const char *type, *data;
} takers[] = {
    { "StatementDataAggregation", "{\"data_path\": \"%s\"}" },
    { "StatementRender", "{\"aggregated_data_path\": \"%s\", \"output_type\": \"csv\"}" },
    { "StatementRemove", "{\"path\": \"%s\"}" },
};

static void expect_bad_path(const char *path)
{
    for (size_t i = 0; i < CB_COUNT(takers); i++) {
        char *data = NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        cr_assert_geq(asprintf(&data, takers[i].data, path), 0);
#pragma GCC diagnostic pop
        report_run run = report_do_again(cb_uuid_new(), NULL, takers[i].type, data);
        cr_expect(
            strcmp(run.outcome, "PERMANENT INVALID_PATH") == 0 ||
                (strstr(path, "\\u0000") && strcmp(run.outcome, "PERMANENT INVALID_DATA") == 0),
            "%s '%.100s': %s %s", takers[i].type, path, run.outcome, run.message);
        free(data);
    }
}

/* PM.7: traversal in any form. */
Test(reporting_hostile, paths_that_this_set_never_gave_are_refused)
{
    static const char *const paths[] = {
        "",
        "../x",
        "a/b",
        "/etc/passwd",
        "..",
        ".",
        "../../../../etc/passwd",
        "query.json",
        "%2e%2e/x",
        "..\\\\x",
        "\\u0000",
        "\xc3\xa4/\xc3\xb6",
    };
    report_run query = report_query("\"ACC-001\"");
    char path[1024], folder[64], file[128];
    snprintf(folder, sizeof folder, "%.36s", query.path);
    snprintf(file, sizeof file, "%.100s", query.path + 37);

    for (size_t i = 0; i < CB_COUNT(paths); i++)
        expect_bad_path(paths[i]);
    static const char *const forms[] = {
        "%s/../%s",   "%s//%s", "./%s/%s",      "/%s/%s",   "%s/%s/",
        "%s/%s.part", "%s/.%s", "%s/%s\\u0000", "%s/%s\\n", " %s/%s",
    };
    for (size_t i = 0; i < CB_COUNT(forms); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, forms[i], folder, file);
#pragma GCC diagnostic pop
        expect_bad_path(path);
    }
    snprintf(path, sizeof path, "%s/query-%s.exe", folder, query.command_id.text);
    expect_bad_path(path);
    snprintf(path, sizeof path, "%s/QUERY-%s.json", folder, query.command_id.text);
    expect_bad_path(path);

    char *longest = calloc(1, 100001);
    memset(longest, 'a', 100000);
    expect_bad_path(longest);
    free(longest);
    cr_expect_eq(report_files(), 2, "the query's file is still there, and nothing else");
}

Test(reporting_hostile, files_of_another_process_are_not_touched)
{
    report_run query = report_query("\"ACC-001\"");

    reports.correlation_id = cb_uuid_new();
    expect_bad_path(query.path);

    cr_expect_eq(report_files(), 2);
}

/* A result of one kind is not taken for another. */
Test(reporting_hostile, a_query_cannot_be_rendered)
{
    report_run run =
        report_do("StatementRender", "{\"aggregated_data_path\": \"%s\", \"output_type\": \"pdf\"}",
                  report_query("\"ACC-001\"").path);

    cr_expect_str_eq(run.outcome, "PERMANENT INVALID_PATH");
}

Test(reporting_hostile, unknown_output_types_are_refused)
{
    static const char *const types[] = { "\"exe\"", "\"none\"", "\"../pdf\"", "\"PDF\"",
                                         "null",    "7",        "[\"pdf\"]" };
    report_run aggregate = report_aggregate("\"ACC-001\"");

    for (size_t i = 0; i < CB_COUNT(types); i++) {
        report_run run =
            report_do("StatementRender", "{\"aggregated_data_path\": \"%s\", \"output_type\": %s}",
                      aggregate.path, types[i]);
        cr_expect_str_eq(run.outcome, "PERMANENT INVALID_DATA", "%s: %s", types[i], run.outcome);
    }
}

Test(reporting_hostile, files_that_were_touched_are_refused)
{
    static const char *const texts[] = {
        " ",
        "[]",
        "{",
        "{}",
        "{\"accounts\": 7}",
        "{\"from_date\": \"a\", \"to_date\": \"b\", \"accounts\": [7]}",
        "{\"from_date\": \"a\", \"to_date\": \"b\", \"accounts\": [{\"account_id\": \"A\", \"holder\": \"\", "
        "\"currency\": \"EUR\", \"opening_balance\": \"1e9\", \"transactions\": []}]}",
        "{\"from_date\": \"a\", \"to_date\": \"b\", \"accounts\": [{\"account_id\": \"A\", \"holder\": \"\", "
        "\"currency\": \"EUR\", \"opening_balance\": 1.5, \"transactions\": []}]}",
        "{\"from_date\": \"a\", \"to_date\": \"b\", \"accounts\": [{\"account_id\": \"A\", \"holder\": \"\", "
        "\"currency\": \"EUR\", \"opening_balance\": \"1\", \"transactions\": [{\"booked_on\": \"2023-13-01\", "
        "\"amount\": \"1\"}]}]}",
        "{\"from_date\": \"a\", \"to_date\": \"b\", \"accounts\": [{\"account_id\": \"A\", \"holder\": \"\", "
        "\"currency\": \"EUR\", \"months\": [], \"count\": 0, \"opening_balance\": \"=1\", \"in\": \"0\", "
        "\"out\": \"0\", \"closing_balance\": \"0\"}]}",
    };
    report_run query = report_query("\"ACC-001\""), aggregate = report_aggregate("\"ACC-001\"");

    for (size_t i = 0; i < CB_COUNT(texts); i++) {
        report_write(query.path, texts[i]);
        report_write(aggregate.path, texts[i]);
        report_run one =
            report_do("StatementDataAggregation", "{\"data_path\": \"%s\"}", query.path);
        report_run two = report_do("StatementRender",
                                   "{\"aggregated_data_path\": \"%s\", \"output_type\": \"csv\"}",
                                   aggregate.path);
        cr_expect_str_eq(one.outcome, "PERMANENT FILE_CORRUPT", "%s: %s", texts[i], one.outcome);
        cr_expect_str_eq(two.outcome, "PERMANENT FILE_CORRUPT", "%s: %s", texts[i], two.outcome);
    }
}

Test(reporting_hostile, a_file_that_is_gone_is_missed)
{
    report_run query = report_query("\"ACC-001\"");
    report_do("StatementRemove", "{\"path\": \"%s\"}", query.path);

    report_run run = report_do("StatementDataAggregation", "{\"data_path\": \"%s\"}", query.path);

    cr_expect_str_eq(run.outcome, "PERMANENT FILE_MISSING", "%s", run.message);
}

/* Somebody who may write into the folder cannot make a worker read or remove what lies
 * elsewhere. */
Test(reporting_hostile, links_are_not_followed)
{
    char path[PATH_MAX], outside[PATH_MAX];
    report_run query = report_query("\"ACC-001\"");
    snprintf(path, sizeof path, "%s/%s", reports.folder, query.path);
    snprintf(outside, sizeof outside, "%s/outside.json", reports.folder);
    cr_assert_eq(rename(path, outside), 0);
    cr_assert_eq(symlink(outside, path), 0);

    report_run run = report_do("StatementDataAggregation", "{\"data_path\": \"%s\"}", query.path);
    cr_expect_str_eq(run.outcome, "TRANSIENT STORE_FAILED", "%s", run.message);

    report_do("StatementRemove", "{\"path\": \"%s\"}", query.path);
    cr_expect_eq(access(outside, F_OK), 0, "what the link led to is still there");
}

/* ---- runs that are cut off ---- */

static bool is_always_lost(void *arg)
{
    (void)arg;
    return true;
}

static int64_t no_time(void *arg)
{
    (void)arg;
    return 0;
}

static const char query_data[] = "{" PERIOD ", \"account_list\": [\"ACC-001\"]}";

Test(reporting_hostile, a_run_that_has_lost_its_lease_or_its_time_writes_nothing)
{
    static const cb_host lost = { .is_lost = is_always_lost }, late = { .remaining_ms = no_time };

    report_run one = report_do_again(cb_uuid_new(), &lost, "StatementQuery", query_data);
    report_run two = report_do_again(cb_uuid_new(), &late, "StatementQuery", query_data);

    cr_expect_str_eq(one.outcome, "TRANSIENT LEASE_LOST");
    cr_expect_str_eq(two.outcome, "TRANSIENT OUT_OF_TIME");
    cr_expect_eq(report_files(), 0);
}

/* From here on the kernel kills this process when it gives a file its name. */
static void die_at_rename(void)
{
#ifdef SYS_rename
    const unsigned plain = SYS_rename;
#else
    const unsigned plain = SYS_renameat2;
#endif
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, plain, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(1);
}

/* Runs a command in a process that dies between the last byte and the name. */
static void run_and_die(cb_uuid id)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        die_at_rename();
        report_do_again(id, NULL, "StatementQuery", query_data);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "it ended with %x", status);
}

/* PM.7 */
Test(reporting_hostile, a_worker_that_dies_before_the_rename_leaves_no_half_file)
{
    char path[PATH_MAX];
    cb_uuid id = cb_uuid_new();

    run_and_die(id);
    snprintf(path, sizeof path, "%s/%s/query-%s.json", reports.folder, reports.correlation_id.text,
             id.text);
    cr_expect_neq(access(path, F_OK), 0, "nobody sees a file");
    cr_expect_eq(report_files(), 2, "the folder, and what was hidden");

    report_run again = report_do_again(id, NULL, "StatementQuery", query_data);

    cr_expect_str_eq(again.outcome, "SUCCESS");
    cr_expect_eq(access(path, F_OK), 0);
    cr_expect_eq(report_files(), 2, "what was left behind is swept away");
}

/* PM.4 */
Test(reporting_hostile, removing_takes_what_was_half_written_along)
{
    cb_uuid id = cb_uuid_new();
    run_and_die(id);
    cr_assert_eq(report_files(), 2);

    report_run run = report_do("StatementRemove", "{\"path\": \"%s/query-%s.json\"}",
                               reports.correlation_id.text, id.text);

    cr_expect_str_eq(run.outcome, "SUCCESS");
    cr_expect_eq(report_files(), 0);
}

/* PM.4: the command that left it went to the TSQ, so that nothing is owed for it; its process is
 * undone. */
Test(reporting_hostile, removing_takes_along_what_other_commands_of_the_process_have_half_written)
{
    run_and_die(cb_uuid_new());
    report_run query = report_do("StatementQuery", "%s", query_data);
    cr_assert_eq(report_files(), 3);

    report_run run = report_do("StatementRemove", "{\"path\": \"%s\"}", query.path);

    cr_expect_str_eq(run.outcome, "SUCCESS");
    cr_expect_eq(report_files(), 0);
}

/* PM.7 */
Test(reporting_hostile, a_full_disk_leaves_nothing_behind)
{
    struct rlimit none = { 0, RLIM_INFINITY }, before;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    none.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &none);

    report_run run = report_do("StatementQuery", "%s", query_data);

    setrlimit(RLIMIT_FSIZE, &before);
    cr_expect_str_eq(run.outcome, "TRANSIENT STORE_FAILED");
    cr_expect_eq(report_files(), 0, "no folder, no part");
}
