/* One process, taken apart for those who print it; what it is and what it is doing. */
#include "process_view.h"

#include "figures.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_object *process_array(const cb_rows *rows, const char *column)
{
    const char *text = cb_rows_get(rows, 0, column);
    json_object *array = text ? json_tokener_parse(text) : NULL;

    return array ? array : json_object_new_array();
}

void process_view_open(process_view *v, const cb_rows *rows)
{
    *v = (process_view){
        .rows = rows,
        .records = process_array(rows, "records"),
        .attempts = process_array(rows, "attempts"),
        .inbox = process_array(rows, "inbox"),
        .events = process_array(rows, "events"),
        .owed = process_array(rows, "owed"),
    };
    (void)moment_parse(cb_rows_get(rows, 0, "now"), &v->now);
}

void process_view_done(process_view *v)
{
    json_object_put(v->records);
    json_object_put(v->attempts);
    json_object_put(v->inbox);
    json_object_put(v->events);
    json_object_put(v->owed);
}

const char *process_text(const process_view *v, const char *column)
{
    return cb_rows_get(v->rows, 0, column);
}

bool process_is(const process_view *v, const char *column, const char *value)
{
    const char *text = process_text(v, column);

    return text && strcmp(text, value) == 0;
}

bool process_until(const process_view *v, const char *column, double *seconds)
{
    if (!moment_parse(process_text(v, column), seconds))
        return false;
    *seconds -= v->now;
    return true;
}

json_object *json_member_of(json_object *object, const char *key)
{
    json_object *member = NULL;

    return json_object_object_get_ex(object, key, &member) ? member : NULL;
}

const char *json_member_text(json_object *object, const char *key)
{
    json_object *member = json_member_of(object, key);

    return member ? json_object_get_string(member) : NULL;
}

bool json_member_is(json_object *object, const char *key, const char *value)
{
    const char *text = json_member_text(object, key);

    return text && strcmp(text, value) == 0;
}

const char *json_member_shown(json_object *object, const char *key)
{
    const char *text = json_member_text(object, key);

    return text ? text : "-";
}

bool process_record_is_open(json_object *record)
{
    return json_member_is(record, "status", "STARTED") ||
           json_member_is(record, "status", "RETRY") || json_member_is(record, "status", "WAITING");
}

json_object *process_open_record(const process_view *v)
{
    json_object *failed = NULL;

    for (size_t i = json_object_array_length(v->records); i-- > 0;) {
        json_object *record = json_object_array_get_idx(v->records, i);
        if (process_record_is_open(record))
            return record;
        if (!failed && json_member_of(record, "command") &&
            json_member_is(record, "status", "FAILED"))
            failed = record;
    }
    return failed;
}

json_object *process_record(const process_view *v, int ordinal)
{
    for (size_t i = 0; i < json_object_array_length(v->records); i++) {
        json_object *record = json_object_array_get_idx(v->records, i);
        if (json_object_get_int(json_member_of(record, "ordinal")) == ordinal)
            return record;
    }
    return NULL;
}

/* The head of what people read. */

static const struct {
    const char *status, *meaning;
} head_meanings[] = {
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

static const char *head_meaning(const char *status)
{
    for (size_t i = 0; status && i < sizeof head_meanings / sizeof *head_meanings; i++) {
        if (strcmp(head_meanings[i].status, status) == 0)
            return head_meanings[i].meaning;
    }
    return "";
}

static void head_label(const char *name)
{
    printf("  %-10s ", name);
}

/* A column that every process has. */
static const char *head_known(const process_view *v, const char *column)
{
    const char *text = process_text(v, column);

    return text ? text : "-";
}

static void head_plain(const char *text)
{
    output_plain(stdout, text ? text : "-");
}

/* "in 3 min (2026-03-01 08:00:00+00)", or "3 min ago (…)". */
static void head_print_moment(const process_view *v, const char *column)
{
    char span[48], date[64];
    double left = 0;

    (void)process_until(v, column, &left);
    printf(left >= 0 ? "in %s" : "%s ago",
           moment_span(left >= 0 ? left : -left, span, sizeof span));
    printf(" (%s)", moment_date(process_text(v, column), date, sizeof date));
}

static void head_line_of_moment(const process_view *v, const char *name, const char *column)
{
    if (!process_text(v, column))
        return;
    head_label(name);
    head_print_moment(v, column);
    putchar('\n');
}

static void head_line_of_text(const process_view *v, const char *name, const char *column)
{
    if (!process_text(v, column))
        return;
    head_label(name);
    head_plain(process_text(v, column));
    putchar('\n');
}

/* It is on its way to an end that is not the one of its code. */
static void head_print_leaving(const process_view *v)
{
    const char *text = process_text(v, "leaving");
    json_object *leaving = text ? json_tokener_parse(text) : NULL;
    const char *code = json_member_text(leaving, "code");

    if (leaving) {
        head_label("leaving");
        fputs("to be ", stdout);
        head_plain(json_member_text(leaving, "end"));
        fputs(code ? ": " : "", stdout);
        head_plain(code ? code : "");
        if (json_member_of(process_open_record(v), "command"))
            fputs("; the outcome of its command comes first", stdout);
        putchar('\n');
    }
    json_object_put(leaving);
}

static void head_print_status(const process_view *v)
{
    const char *status = head_known(v, "status");
    char span[48];
    double left = 0;

    head_label("status");
    printf("%s: %s", status, head_meaning(status));
    if (process_is(v, "phase", "COMPENSATING") && !process_text(v, "completed_at") &&
        strcmp(status, "COMPENSATING") != 0)
        fputs(", while what it did is being undone", stdout);
    putchar('\n');
    if (process_is(v, "running", "t") && process_until(v, "lease_until", &left)) {
        head_label("runs on");
        head_plain(process_text(v, "lease_owner"));
        printf(", lease ends in %s\n", moment_span(left, span, sizeof span));
    }
    head_print_leaving(v);
}

static void head_print_where(const process_view *v)
{
    const char *wait = process_text(v, "current_wait"), *step = process_text(v, "current_step");
    char span[48];
    double left = 0;

    if (step && !(wait && strcmp(wait, step) == 0))
        head_line_of_text(v, "step", "current_step");
    if (wait) {
        head_label(process_is(v, "status", "WAITING_FOR_TSQ") ? "at" : "waits for");
        head_plain(wait);
        if (process_until(v, "next_wait_timeout_at", &left))
            printf(left >= 0 ? ", times out in %s" : ", timed out %s ago",
                   moment_span(left >= 0 ? left : -left, span, sizeof span));
        putchar('\n');
    }
    head_line_of_moment(v, "retry", "next_retry_at");
    if (process_text(v, "deadline_at")) {
        head_label("deadline");
        head_print_moment(v, "deadline_at");
        puts(process_is(v, "deadline_spent", "t") ? ", no longer counts" : "");
    }
}

static void head_print_error(const process_view *v)
{
    if (!process_text(v, "error_code"))
        return;
    head_label("error");
    head_plain(process_text(v, "error_code"));
    if (process_text(v, "error_message")) {
        fputs(": ", stdout);
        head_plain(process_text(v, "error_message"));
    }
    putchar('\n');
}

/* "bookFx (fx/ReleaseFx), markProcessing": what undoing it would take, the last first. */
static void head_print_owed(const process_view *v)
{
    size_t n = json_object_array_length(v->owed);

    if (n == 0 || process_is(v, "status", "COMPLETED"))
        return;
    head_label(process_is(v, "phase", "COMPENSATING") ? "still owed" : "can undo");
    for (size_t i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(v->owed, i);
        json_object *owes = json_member_of(one, "owes");
        const char *type = json_member_text(owes, "command_type");
        fputs(i > 0 ? ", " : "", stdout);
        head_plain(json_member_text(one, "name"));
        if (type) {
            fputs(" (", stdout);
            head_plain(json_member_text(owes, "domain"));
            putchar('/');
            head_plain(type);
            putchar(')');
        }
    }
    putchar('\n');
}

static void head_print_version(const process_view *v)
{
    const char *wrote = head_known(v, "version"), *newest = process_text(v, "registered_version");

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

    head_plain(process_text(v, "process_type"));
    printf(" %s\n", head_known(v, "process_id"));
    head_print_status(v);
    head_print_where(v);
    head_print_error(v);
    head_line_of_moment(v, "in TSQ", "tsq_at");
    head_print_owed(v);
    head_label("domain");
    head_plain(process_text(v, "domain"));
    printf(", %s", head_known(v, "execution_model"));
    head_print_version(v);
    head_line_of_text(v, "batch", "batch_id");
    head_line_of_moment(v, "started", "created_at");
    if (process_text(v, "completed_at")) {
        head_label("ended");
        head_print_moment(v, "completed_at");
        if (moment_parse(process_text(v, "created_at"), &created) &&
            moment_parse(process_text(v, "completed_at"), &completed))
            printf(", it took %s", moment_span(completed - created, span, sizeof span));
        putchar('\n');
    }
}
