/* Everything that happened to a process, in the order of time. */
#include "process_story.h"

#include "moment.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One thing that happened. Borrowed from the view. */
typedef struct {
    double at;
    size_t place; /* of things at the same moment */
    const char *time;
    json_object *record, *event; /* one of them; neither: it was started */
} entry;

static int by_time(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void add(entry *entries, size_t *n, const char *time, json_object *record,
                json_object *event)
{
    entry *e = &entries[*n];

    *e = (entry){ .place = *n, .time = time, .record = record, .event = event };
    (void)moment_parse(time, &e->at);
    ++*n;
}

static bool is_event(json_object *event, const char *name)
{
    const char *text = json_member_text(event, "event");

    return text && strcmp(text, name) == 0;
}

static size_t gather(const process_view *v, entry *entries)
{
    size_t n = 0, events = json_object_array_length(v->events);
    bool created = false;

    for (size_t i = 0; i < events && !created; i++)
        created = is_event(json_object_array_get_idx(v->events, i), "PROCESS_CREATED");
    if (!created)
        add(entries, &n, process_text(v, "created_at"), NULL, NULL);
    for (size_t i = 0; i < json_object_array_length(v->records); i++) {
        json_object *record = json_object_array_get_idx(v->records, i);
        add(entries, &n, json_member_text(record, "at"), record, NULL);
    }
    for (size_t i = 0; i < events; i++) {
        json_object *event = json_object_array_get_idx(v->events, i);
        add(entries, &n, json_member_text(event, "at"), NULL, event);
    }
    qsort(entries, n, sizeof *entries, by_time);
    return n;
}

static void print_plain(const char *before, const char *text)
{
    if (!text)
        return;
    fputs(before, stdout);
    output_plain(stdout, text);
}

/* Who decided what and why; or whatever else the details say. */
static void print_event(json_object *event)
{
    json_object *details = json_member_of(event, "details");
    const char *reason = json_member_text(details, "reason");

    if (is_event(event, "PROCESS_CREATED")) {
        print_plain("started by ", json_member_text(event, "db_user"));
        putchar('\n');
        return;
    }
    printf("%-12s ", "event");
    output_plain(stdout, json_member_shown(event, "event"));
    print_plain(" at ", json_member_text(event, "step_name"));
    print_plain(" by ", json_member_text(event, "operator"));
    print_plain(" on ", json_member_text(event, "worker"));
    if (json_member_text(event, "operator") && reason) {
        print_plain(": ", reason);
    } else if (is_event(event, "PARKED") || is_event(event, "REPLY_NOT_FINAL")) {
        print_plain(": ", json_member_text(details, "error_code"));
        print_plain(": ", json_member_text(details, "error_message"));
    } else if (details)
        story_print_json("  ", details);
    putchar('\n');
}

static size_t longest_name(const process_view *v)
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
static void print_day(const entry *e, const char **day)
{
    if (!e->time || (*day && strncmp(*day, e->time, 10) == 0))
        return;
    *day = e->time;
    printf("\n%.10s\n", e->time);
}

static void print_inbox(const process_view *v)
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
    entry *entries = calloc(most, sizeof *entries);
    size_t n = entries ? gather(v, entries) : 0;
    const char *day = NULL;
    int width = (int)longest_name(v);
    char clock[32];

    for (size_t i = 0; i < n; i++) {
        const entry *e = &entries[i];
        print_day(e, &day);
        printf("  %s  ", moment_clock(e->time, clock, sizeof clock));
        if (e->record)
            story_print_record(v, e->record, width);
        else if (e->event)
            print_event(e->event);
        else
            puts("started");
    }
    free(entries);
    print_inbox(v);
}
