/* What a process is and what it is doing. */
#include "moment.h"
#include "output.h"
#include "process_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *status, *meaning;
} meanings[] = {
    { "PENDING", "a worker that has its type runs it next" },
    { "EXECUTING", "it runs" },
    { "WAITING_FOR_REPLY", "it waits for the reply to its command" },
    { "WAITING_FOR_ASYNC", "it waits for a reply or a response" },
    { "WAITING_FOR_RETRY", "a step failed and comes again by itself" },
    { "WAITING_FOR_TSQ", "it waits for an operator's decision" },
    { "COMPENSATING", "what it did is being undone" },
    { "COMPENSATED", "ended: what it did has been undone" },
    { "COMPLETED", "ended well" },
    { "CANCELED", "ended by an operator" },
    { "FAILED", "ended by its deadline, nothing undone" },
};

static const char *meaning_of(const char *status)
{
    for (size_t i = 0; status && i < sizeof meanings / sizeof *meanings; i++) {
        if (strcmp(meanings[i].status, status) == 0)
            return meanings[i].meaning;
    }
    return "";
}

static void label(const char *name)
{
    printf("  %-10s ", name);
}

/* A column that every process has. */
static const char *known(const process_view *v, const char *column)
{
    const char *text = process_text(v, column);

    return text ? text : "-";
}

static void plain(const char *text)
{
    output_plain(stdout, text ? text : "-");
}

/* "in 3 min (2026-03-01 08:00:00+00)", or "3 min ago (…)". */
static void print_moment(const process_view *v, const char *column)
{
    char span[48], date[64];
    double left = 0;

    (void)process_until(v, column, &left);
    printf(left >= 0 ? "in %s" : "%s ago",
           moment_span(left >= 0 ? left : -left, span, sizeof span));
    printf(" (%s)", moment_date(process_text(v, column), date, sizeof date));
}

static void line_of_moment(const process_view *v, const char *name, const char *column)
{
    if (!process_text(v, column))
        return;
    label(name);
    print_moment(v, column);
    putchar('\n');
}

static void line_of_text(const process_view *v, const char *name, const char *column)
{
    if (!process_text(v, column))
        return;
    label(name);
    plain(process_text(v, column));
    putchar('\n');
}

/* It is on its way to an end that is not the one of its code. */
static void print_leaving(const process_view *v)
{
    const char *text = process_text(v, "leaving");
    json_object *leaving = text ? json_tokener_parse(text) : NULL;
    const char *code = json_member_text(leaving, "code");

    if (leaving) {
        label("leaving");
        fputs("to be ", stdout);
        plain(json_member_text(leaving, "end"));
        fputs(code ? ": " : "", stdout);
        plain(code ? code : "");
        if (json_member_of(process_open_record(v), "command"))
            fputs("; the outcome of its command comes first", stdout);
        putchar('\n');
    }
    json_object_put(leaving);
}

static void print_status(const process_view *v)
{
    const char *status = known(v, "status");
    char span[48];
    double left = 0;

    label("status");
    printf("%s: %s", status, meaning_of(status));
    if (process_is(v, "phase", "COMPENSATING") && !process_text(v, "completed_at") &&
        strcmp(status, "COMPENSATING") != 0)
        fputs(", while what it did is being undone", stdout);
    putchar('\n');
    if (process_is(v, "running", "t") && process_until(v, "lease_until", &left)) {
        label("runs on");
        plain(process_text(v, "lease_owner"));
        printf(", lease ends in %s\n", moment_span(left, span, sizeof span));
    }
    print_leaving(v);
}

static void print_where(const process_view *v)
{
    const char *wait = process_text(v, "current_wait"), *step = process_text(v, "current_step");
    char span[48];
    double left = 0;

    if (step && !(wait && strcmp(wait, step) == 0))
        line_of_text(v, "step", "current_step");
    if (wait) {
        label(process_is(v, "status", "WAITING_FOR_TSQ") ? "at" : "waits for");
        plain(wait);
        if (process_until(v, "next_wait_timeout_at", &left))
            printf(left >= 0 ? ", times out in %s" : ", timed out %s ago",
                   moment_span(left >= 0 ? left : -left, span, sizeof span));
        putchar('\n');
    }
    line_of_moment(v, "retry", "next_retry_at");
    if (process_text(v, "deadline_at")) {
        label("deadline");
        print_moment(v, "deadline_at");
        puts(process_is(v, "deadline_spent", "t") ? ", no longer counts" : "");
    }
}

static void print_error(const process_view *v)
{
    if (!process_text(v, "error_code"))
        return;
    label("error");
    plain(process_text(v, "error_code"));
    if (process_text(v, "error_message")) {
        fputs(": ", stdout);
        plain(process_text(v, "error_message"));
    }
    putchar('\n');
}

/* "bookFx (fx/ReleaseFx), markProcessing": what undoing it would take, the last first. */
static void print_owed(const process_view *v)
{
    size_t n = json_object_array_length(v->owed);

    if (n == 0 || process_is(v, "status", "COMPLETED"))
        return;
    label(process_is(v, "phase", "COMPENSATING") ? "still owed" : "can undo");
    for (size_t i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(v->owed, i);
        json_object *owes = json_member_of(one, "owes");
        const char *type = json_member_text(owes, "command_type");
        fputs(i > 0 ? ", " : "", stdout);
        plain(json_member_text(one, "name"));
        if (type) {
            fputs(" (", stdout);
            plain(json_member_text(owes, "domain"));
            putchar('/');
            plain(type);
            putchar(')');
        }
    }
    putchar('\n');
}

static void print_version(const process_view *v)
{
    const char *wrote = known(v, "version"), *newest = process_text(v, "registered_version");

    if (strcmp(wrote, "0") == 0)
        puts(", has not run yet");
    else if (!newest || strtol(newest, NULL, 10) >= strtol(wrote, NULL, 10))
        printf(", version %s\n", wrote);
    else
        printf(", version %s: needs workers of that version, %s is the newest there was\n", wrote,
               newest);
}

void process_print_head(const process_view *v)
{
    double created = 0, completed = 0;
    char span[48];

    plain(process_text(v, "process_type"));
    printf(" %s\n", known(v, "process_id"));
    print_status(v);
    print_where(v);
    print_error(v);
    line_of_moment(v, "in TSQ", "tsq_at");
    print_owed(v);
    label("domain");
    plain(process_text(v, "domain"));
    printf(", %s", known(v, "execution_model"));
    print_version(v);
    line_of_text(v, "batch", "batch_id");
    line_of_moment(v, "started", "created_at");
    if (process_text(v, "completed_at")) {
        label("ended");
        print_moment(v, "completed_at");
        if (moment_parse(process_text(v, "created_at"), &created) &&
            moment_parse(process_text(v, "completed_at"), &completed))
            printf(", it took %s", moment_span(completed - created, span, sizeof span));
        putchar('\n');
    }
}
