/* What happened to a command of a process, in the story of it. */
#include "moment.h"
#include "output.h"
#include "process_story.h"

#include <stdio.h>
#include <string.h>

/* How an event is told. What follows it: the worker, the attempt, how long after the line before. */
static const struct {
    const char *event, *words;
    bool waited; /* the time since the line before was spent in the queue */
} tellings[] = {
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

static void fact(const char *before, const char *text)
{
    if (!text)
        return;
    fputs(before, stdout);
    output_plain(stdout, text);
}

/* Only what says why: a result is the record's. */
static void print_why(json_object *details)
{
    const char *code = json_member_text(details, "error_code");

    fact(": ", json_member_text(details, "reason"));
    if (json_member_text(details, "error_type"))
        fact(": ", code);
    fact(": ", json_member_text(details, "error_message"));
}

/* most: how often its handler may be called, or NULL. */
static void print_event(json_object *event, double since, const char *most)
{
    const char *name = json_member_text(event, "event_type"), *words = name;
    bool waited = false, received = strcmp(name, "RECEIVED") == 0;
    char span[48];

    for (size_t i = 0; i < sizeof tellings / sizeof *tellings; i++) {
        if (strcmp(tellings[i].event, name) == 0) {
            words = tellings[i].words;
            waited = tellings[i].waited;
        }
    }
    output_plain(stdout, words);
    if (received) {
        fact(" by ", json_member_text(event, "worker"));
        fact(", attempt ", json_member_text(event, "attempt"));
        fact(" of ", most);
    }
    fact(" by ", json_member_text(event, "operator"));
    if (json_member_text(json_member_of(event, "details"), "found_by"))
        fact(", last run by ", json_member_text(event, "worker"));
    if (since >= 0)
        printf(waited ? ", waited %s" : " after %s", moment_span(since, span, sizeof span));
    print_why(json_member_of(event, "details"));
    putchar('\n');
}

void story_print_trail(json_object *command)
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
            print_event(event, known ? at - before : -1, json_member_text(command, "max_attempts"));
        before = at;
        known = true;
    }
}
