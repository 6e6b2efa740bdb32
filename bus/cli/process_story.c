/* Everything that happened to a process, in the order of time: its records, and below them what
 * happened to their commands. */
#include "figures.h"
#include "output.h"
#include "process_view.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_JSON 120 /* characters of a payload in a line; --json has all of it */
#define MOST_FIELDS  6

/* `before` and the text, or nothing. */
static void story_fact(const char *before, const char *text)
{
    if (!text)
        return;
    fputs(before, stdout);
    output_plain(stdout, text);
}

/* `before` and the value on one line, cut where it gets long. */
static void story_print_json(const char *before, json_object *value)
{
    const char *text = value ? json_object_to_json_string_ext(
                                   value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
                             : NULL;
    char cut[LONGEST_JSON + 1];

    if (!text)
        return;
    snprintf(cut, sizeof cut, "%s", text);
    utf8_trim(cut);
    story_fact(before, cut);
    fputs(strlen(text) > LONGEST_JSON ? "..." : "", stdout);
}

/* How an event is told. What follows it: the worker, the attempt, how long after the line
 * before. */
static const struct {
    const char *event, *words;
    bool waited; /* the time since the line before was spent in the queue */
} record_tellings[] = {
    { "SENT", "sent", false },
    { "RECEIVED", "received", true },
    { "COMPLETED", "completed", false },
    { "FAILED", "failed", false },
    { "BUSINESS_RULE_FAILED", "refused by a business rule", false },
    { "MOVED_TO_TSQ", "moved to the troubleshooting queue", false },
    { "RELEASED", "given back", false },
    { "OPERATOR_RETRY", "retried", false },
    { "OPERATOR_CANCEL", "canceled", false },
    { "OPERATOR_COMPLETE", "completed by hand", false },
    { "STALE_OUTCOME", "a late outcome was ignored", false },
    { "REPLY_DEAD_LETTERED", "its reply found nobody", false },
};

/* Only what says why: a result is the record's. */
static void record_print_why(json_object *details)
{
    const char *code = json_member_text(details, "error_code");

    story_fact(": ", json_member_text(details, "reason"));
    if (json_member_text(details, "error_type"))
        story_fact(": ", code);
    story_fact(": ", json_member_text(details, "error_message"));
}

/* most: how often its handler may be called, or NULL. */
static void record_print_trail_event(json_object *event, double since, const char *most)
{
    const char *name = json_member_text(event, "event_type"), *words = name;
    bool waited = false, received = strcmp(name, "RECEIVED") == 0;
    char span[48];

    for (size_t i = 0; i < sizeof record_tellings / sizeof *record_tellings; i++) {
        if (strcmp(record_tellings[i].event, name) == 0) {
            words = record_tellings[i].words;
            waited = record_tellings[i].waited;
        }
    }
    output_plain(stdout, words);
    if (received) {
        story_fact(" by ", json_member_text(event, "worker"));
        story_fact(", attempt ", json_member_text(event, "attempt"));
        story_fact(" of ", most);
    }
    story_fact(" by ", json_member_text(event, "operator"));
    if (json_member_text(json_member_of(event, "details"), "found_by"))
        story_fact(", last run by ", json_member_text(event, "worker"));
    if (since >= 0)
        printf(waited ? ", waited %s" : " after %s", moment_span(since, span, sizeof span));
    record_print_why(json_member_of(event, "details"));
    putchar('\n');
}

/* What happened to a record's command, a line each. */
static void record_print_trail(json_object *command)
{
    json_object *trail = json_member_of(command, "trail");
    double before = 0, at = 0;
    bool known = false;
    char clock[32];

    for (size_t i = 0; trail && i < json_object_array_length(trail); i++) {
        json_object *event = json_object_array_get_idx(trail, i);
        const char *name = json_member_text(event, "event_type");
        const char *time = json_member_text(event, "at");
        const char *again = json_member_text(json_member_of(event, "details"), "visible_at");

        if (!name || !moment_parse(time, &at))
            continue;
        printf("        %s  ", moment_clock(time, clock, sizeof clock));
        if (strcmp(name, "RETRY_SCHEDULED") == 0)
            printf("comes again at %s\n", moment_clock(again, clock, sizeof clock));
        else
            record_print_trail_event(event, known ? at - before : -1,
                                     json_member_text(command, "max_attempts"));
        before = at;
        known = true;
    }
}

/* How long it took, or has taken until now. */
static void record_print_duration(const process_view *v, json_object *record)
{
    json_object *took = json_member_of(record, "took_ms");
    double from = 0, until = 0;
    char span[48];

    if (took) {
        printf("  took %s", moment_span(json_object_get_double(took) / 1000, span, sizeof span));
        return;
    }
    if (!moment_parse(json_member_text(record, "begun_at"), &from) &&
        !moment_parse(json_member_text(record, "at"), &from))
        return;
    bool waits = json_member_is(record, "kind", "WAIT") || json_member_of(record, "command");
    if (process_record_is_open(record))
        printf("  for %s", moment_span(v->now - from, span, sizeof span));
    else if (waits && moment_parse(json_member_text(record, "finished_at"), &until))
        printf("  after %s", moment_span(until - from, span, sizeof span));
}

static void record_print_timeout(const process_view *v, json_object *record)
{
    double at = 0;
    char span[48];

    if (!process_record_is_open(record) ||
        !moment_parse(json_member_text(record, "timeout_at"), &at))
        return;
    printf(at >= v->now ? ", times out in %s" : ", timed out %s ago",
           moment_span(at >= v->now ? at - v->now : v->now - at, span, sizeof span));
}

/* Which record this one is about. */
static void record_print_during(const process_view *v, json_object *record)
{
    json_object *during = json_member_of(record, "during");
    json_object *other = during ? process_record(v, json_object_get_int(during)) : NULL;
    const char *before = json_member_is(record, "kind", "COMPENSATION") ? "  undoes "
                         : json_member_is(record, "kind", "WAIT")       ? "  got "
                                                                        : "  during ";

    if (other)
        story_fact(before, json_member_text(other, "name"));
}

/* The names of the state's fields that it changed. */
static void record_print_changes(json_object *record)
{
    json_object *patch = json_member_of(record, "patch");
    size_t n = 0, all = json_object_is_type(patch, json_type_object)
                            ? (size_t)json_object_object_length(patch)
                            : 0;

    if (all == 0)
        return;
    json_object_object_foreach(patch, name, value)
    {
        (void)value;
        if (n < MOST_FIELDS)
            story_fact(n == 0 ? "  sets " : ", ", name);
        n++;
    }
    if (all > MOST_FIELDS)
        printf(" and %zu more", all - MOST_FIELDS);
}

/* "  attempt 2 of 3". */
static void record_print_attempt(json_object *record)
{
    int n = json_object_get_int(json_member_of(record, "attempts"));
    const char *most = json_member_text(record, "max_attempts");

    if (json_member_of(record, "command"))
        return; /* it has attempts of its own, and tells them */
    if (most && (n > 1 || !json_member_is(record, "status", "COMPLETED")))
        printf("  attempt %d of %s", n, most);
    else if (!most && n > 1)
        printf("  %d attempts", n);
    if (json_member_of(record, "took_ms"))
        story_fact(" on ", json_member_text(record, "worker"));
}

static void record_print_command(json_object *record)
{
    json_object *command = json_member_of(record, "command");
    json_object *send_no = json_member_of(record, "send_no");

    if (!command)
        return;
    printf("      command ");
    output_plain(stdout, json_member_shown(command, "domain"));
    story_fact("/", json_member_shown(command, "command_type"));
    story_fact(" ", json_member_shown(command, "command_id"));
    story_fact(" ", json_member_text(command, "status"));
    if (send_no && json_object_get_int(send_no) > 1)
        printf(", sent for the %d. time", json_object_get_int(send_no));
    if (!json_member_text(command, "status"))
        fputs(": its retention is over", stdout);
    putchar('\n');
    record_print_trail(command);
}

/* An attempt that others followed: "      attempt 1 of 3 at 08:00:00.123  took 4 ms on w-1:
 * CODE: why". */
static void record_print_former(const process_view *v, json_object *attempt)
{
    char clock[32];

    if (json_member_of(attempt, "command")) {
        record_print_command(attempt);
        return;
    }
    story_fact("      attempt ", json_member_text(attempt, "attempts"));
    story_fact(" of ", json_member_text(attempt, "max_attempts"));
    story_fact(" at ", moment_clock(json_member_text(attempt, "at"), clock, sizeof clock));
    if (json_member_of(attempt, "took_ms"))
        record_print_duration(v, attempt);
    story_fact(" on ", json_member_text(attempt, "worker"));
    story_fact(": ", json_member_text(attempt, "error_code"));
    story_fact(": ", json_member_text(attempt, "error_message"));
    if (json_member_is(attempt, "status", "STARTED"))
        fputs(": nobody knows how it ended", stdout);
    putchar('\n');
}

static void record_print_formers(const process_view *v, json_object *record)
{
    int ordinal = json_object_get_int(json_member_of(record, "ordinal"));

    for (size_t i = 0; i < json_object_array_length(v->attempts); i++) {
        json_object *attempt = json_object_array_get_idx(v->attempts, i);
        if (json_object_get_int(json_member_of(attempt, "ordinal")) == ordinal)
            record_print_former(v, attempt);
    }
}

/* A record behind its time of day, names padded to `width`, and below it what belongs to it. */
static void record_print(const process_view *v, json_object *record, int width)
{
    const char *name = json_member_text(record, "name");
    json_object *result = json_member_of(record, "result");

    printf("%-12s ", json_member_shown(record, "kind"));
    story_fact("", name);
    printf("%*s  %-9s", name && (int)strlen(name) < width ? width - (int)strlen(name) : 0, "",
           json_member_shown(record, "status"));
    record_print_duration(v, record);
    record_print_timeout(v, record);
    record_print_attempt(record);
    record_print_during(v, record);
    record_print_changes(record);
    if (json_member_is(record, "kind", "OPERATOR")) { /* who decided, and why */
        story_fact("  by ", json_member_text(result, "operator"));
        story_fact(": ", json_member_text(result, "reason"));
    } else if (json_member_is(record, "kind", "RESPONSE") ||
               json_member_is(record, "kind", "SIDE_EFFECT") ||
               json_member_is(record, "kind", "VERSION")) {
        story_print_json("  ", result);
    }
    putchar('\n');
    record_print_formers(v, record);
    if (json_member_text(record, "error_code")) {
        story_fact("      error ", json_member_text(record, "error_code"));
        story_fact(": ", json_member_text(record, "error_message"));
        putchar('\n');
    }
    record_print_command(record);
}

/* One thing that happened. Borrowed from the view. */
typedef struct {
    double at;
    size_t place; /* of things at the same moment */
    const char *time;
    json_object *record, *event; /* one of them; neither: it was started */
} story_entry;

static int story_by_time(const void *a, const void *b)
{
    const story_entry *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void story_add(story_entry *entries, size_t *n, const char *time, json_object *record,
                      json_object *event)
{
    story_entry *e = &entries[*n];

    *e = (story_entry){ .place = *n, .time = time, .record = record, .event = event };
    (void)moment_parse(time, &e->at);
    ++*n;
}

static size_t story_gather(const process_view *v, story_entry *entries)
{
    size_t n = 0, events = json_object_array_length(v->events);
    bool created = false;

    for (size_t i = 0; i < events && !created; i++)
        created =
            json_member_is(json_object_array_get_idx(v->events, i), "event", "PROCESS_CREATED");
    if (!created)
        story_add(entries, &n, process_text(v, "created_at"), NULL, NULL);
    for (size_t i = 0; i < json_object_array_length(v->records); i++) {
        json_object *record = json_object_array_get_idx(v->records, i);
        story_add(entries, &n, json_member_text(record, "at"), record, NULL);
    }
    for (size_t i = 0; i < events; i++) {
        json_object *event = json_object_array_get_idx(v->events, i);
        story_add(entries, &n, json_member_text(event, "at"), NULL, event);
    }
    qsort(entries, n, sizeof *entries, story_by_time);
    return n;
}

/* Who decided what and why; or whatever else the details say. */
static void story_print_event(json_object *event)
{
    json_object *details = json_member_of(event, "details");
    const char *reason = json_member_text(details, "reason");

    if (json_member_is(event, "event", "PROCESS_CREATED")) {
        story_fact("started by ", json_member_text(event, "db_user"));
        putchar('\n');
        return;
    }
    printf("%-12s ", "event");
    output_plain(stdout, json_member_shown(event, "event"));
    story_fact(" at ", json_member_text(event, "step_name"));
    story_fact(" by ", json_member_text(event, "operator"));
    story_fact(" on ", json_member_text(event, "worker"));
    if (json_member_text(event, "operator") && reason) {
        story_fact(": ", reason);
    } else if (json_member_is(event, "event", "PARKED") ||
               json_member_is(event, "event", "REPLY_NOT_FINAL")) {
        story_fact(": ", json_member_text(details, "error_code"));
        story_fact(": ", json_member_text(details, "error_message"));
    } else if (details)
        story_print_json("  ", details);
    putchar('\n');
}

static size_t story_longest_name(const process_view *v)
{
    size_t longest = 0;

    for (size_t i = 0; i < json_object_array_length(v->records); i++) {
        const char *name = json_member_text(json_object_array_get_idx(v->records, i), "name");
        size_t length = name ? strlen(name) : 0;
        longest = length > longest ? length : longest;
    }
    return longest < 40 ? longest : 40;
}

/* Times of day stand in each line; the day only where it begins. */
static void story_print_day(const story_entry *e, const char **day)
{
    if (!e->time || (*day && strncmp(*day, e->time, 10) == 0))
        return;
    *day = e->time;
    printf("\n%.10s\n", e->time);
}

static void story_print_inbox(const process_view *v)
{
    char clock[32];

    if (json_object_array_length(v->inbox) == 0)
        return;
    puts("\nin the inbox, not read yet");
    for (size_t i = 0; i < json_object_array_length(v->inbox); i++) {
        json_object *item = json_object_array_get_idx(v->inbox, i);
        printf("  %s  %-12s ", moment_clock(json_member_text(item, "at"), clock, sizeof clock),
               json_member_shown(item, "kind"));
        output_plain(stdout, json_member_shown(item, "name"));
        story_print_json("  ", json_member_of(item, "payload"));
        putchar('\n');
    }
}

void process_print_story(const process_view *v)
{
    size_t most = 1 + json_object_array_length(v->records) + json_object_array_length(v->events);
    story_entry *entries = calloc(most, sizeof *entries);
    size_t n = entries ? story_gather(v, entries) : 0;
    const char *day = NULL;
    int width = (int)story_longest_name(v);
    char clock[32];

    for (size_t i = 0; i < n; i++) {
        const story_entry *e = &entries[i];
        story_print_day(e, &day);
        printf("  %s  ", moment_clock(e->time, clock, sizeof clock));
        if (e->record)
            record_print(v, e->record, width);
        else if (e->event)
            story_print_event(e->event);
        else
            puts("started");
    }
    free(entries);
    story_print_inbox(v);
}
