/* A record of a process in the story of it. */
#include "moment.h"
#include "output.h"
#include "process_story.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

#define LONGEST_JSON 120 /* characters of a payload in a line; --json has all of it */
#define MOST_FIELDS  6

static bool is(json_object *object, const char *key, const char *value)
{
    const char *text = json_member_text(object, key);

    return text && strcmp(text, value) == 0;
}

static void fact(const char *before, const char *text, const char *after)
{
    if (!text)
        return;
    fputs(before, stdout);
    output_plain(stdout, text);
    fputs(after, stdout);
}

void story_print_json(const char *before, json_object *value)
{
    const char *text = value ? json_object_to_json_string_ext(
                                   value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
                             : NULL;
    char cut[LONGEST_JSON + 1];

    if (!text)
        return;
    snprintf(cut, sizeof cut, "%s", text);
    utf8_trim(cut);
    fact(before, cut, strlen(text) > LONGEST_JSON ? "..." : "");
}

static bool is_open(json_object *record)
{
    return is(record, "status", "STARTED") || is(record, "status", "RETRY") ||
           is(record, "status", "WAITING");
}

/* How long it took, or has taken until now. */
static void print_duration(const process_view *v, json_object *record)
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
    bool waits = is(record, "kind", "WAIT") || json_member_of(record, "command");
    if (is_open(record))
        printf("  for %s", moment_span(v->now - from, span, sizeof span));
    else if (waits && moment_parse(json_member_text(record, "finished_at"), &until))
        printf("  after %s", moment_span(until - from, span, sizeof span));
}

static void print_timeout(const process_view *v, json_object *record)
{
    double at = 0;
    char span[48];

    if (!is_open(record) || !moment_parse(json_member_text(record, "timeout_at"), &at))
        return;
    printf(at >= v->now ? ", times out in %s" : ", timed out %s ago",
           moment_span(at >= v->now ? at - v->now : v->now - at, span, sizeof span));
}

/* Which record this one is about. */
static void print_during(const process_view *v, json_object *record)
{
    json_object *during = json_member_of(record, "during");
    json_object *other = during ? process_record(v, json_object_get_int(during)) : NULL;
    const char *before = is(record, "kind", "COMPENSATION") ? "  undoes "
                         : is(record, "kind", "WAIT")       ? "  got "
                                                            : "  during ";

    if (other)
        fact(before, json_member_text(other, "name"), "");
}

/* The names of the state's fields that it changed. */
static void print_changes(json_object *record)
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
            fact(n == 0 ? "  sets " : ", ", name, "");
        n++;
    }
    if (all > MOST_FIELDS)
        printf(" and %zu more", all - MOST_FIELDS);
}

/* Who decided, and why. */
static void print_operator(json_object *record)
{
    json_object *result = json_member_of(record, "result");

    fact("  by ", json_member_text(result, "operator"), "");
    fact(": ", json_member_text(result, "reason"), "");
}

/* "  attempt 2 of 3". */
static void print_attempt(json_object *record)
{
    int n = json_object_get_int(json_member_of(record, "attempts"));
    const char *most = json_member_text(record, "max_attempts");

    if (json_member_of(record, "command"))
        return; /* it has attempts of its own, and tells them */
    if (most && (n > 1 || !is(record, "status", "COMPLETED")))
        printf("  attempt %d of %s", n, most);
    else if (!most && n > 1)
        printf("  %d attempts", n);
    if (json_member_of(record, "took_ms"))
        fact(" on ", json_member_text(record, "worker"), "");
}

static void print_command(json_object *record)
{
    json_object *command = json_member_of(record, "command");
    json_object *send_no = json_member_of(record, "send_no");

    if (!command)
        return;
    printf("      command ");
    fact("", json_member_text(command, "domain"), "/");
    fact("", json_member_text(command, "command_type"), " ");
    fact("", json_member_text(command, "command_id"), "");
    fact(" ", json_member_text(command, "status"), "");
    if (send_no && json_object_get_int(send_no) > 1)
        printf(", sent for the %d. time", json_object_get_int(send_no));
    if (!json_member_text(command, "status"))
        fputs(": its retention is over", stdout);
    putchar('\n');
    story_print_trail(command);
}

/* An attempt that others followed: "      attempt 1 of 3 at 08:00:00.123  took 4 ms on w-1: CODE: why". */
static void print_former(const process_view *v, json_object *attempt)
{
    char clock[32];

    if (json_member_of(attempt, "command")) {
        print_command(attempt);
        return;
    }
    fact("      attempt ", json_member_text(attempt, "attempts"), "");
    fact(" of ", json_member_text(attempt, "max_attempts"), "");
    fact(" at ", moment_clock(json_member_text(attempt, "at"), clock, sizeof clock), "");
    if (json_member_of(attempt, "took_ms"))
        print_duration(v, attempt);
    fact(" on ", json_member_text(attempt, "worker"), "");
    fact(": ", json_member_text(attempt, "error_code"), "");
    fact(": ", json_member_text(attempt, "error_message"), "");
    if (is(attempt, "status", "STARTED"))
        fputs(": nobody knows how it ended", stdout);
    putchar('\n');
}

static void print_formers(const process_view *v, json_object *record)
{
    int ordinal = json_object_get_int(json_member_of(record, "ordinal"));

    for (size_t i = 0; i < json_object_array_length(v->attempts); i++) {
        json_object *attempt = json_object_array_get_idx(v->attempts, i);
        if (json_object_get_int(json_member_of(attempt, "ordinal")) == ordinal)
            print_former(v, attempt);
    }
}

void story_print_record(const process_view *v, json_object *record, int width)
{
    const char *name = json_member_text(record, "name");
    bool is_operator = is(record, "kind", "OPERATOR");

    printf("%-12s ", json_member_shown(record, "kind"));
    fact("", name, "");
    printf("%*s  %-9s", name && (int)strlen(name) < width ? width - (int)strlen(name) : 0, "",
           json_member_shown(record, "status"));
    print_duration(v, record);
    print_timeout(v, record);
    print_attempt(record);
    print_during(v, record);
    print_changes(record);
    if (is_operator)
        print_operator(record);
    else if (is(record, "kind", "RESPONSE") || is(record, "kind", "SIDE_EFFECT") ||
             is(record, "kind", "VERSION"))
        story_print_json("  ", json_member_of(record, "result"));
    putchar('\n');
    print_formers(v, record);
    if (json_member_text(record, "error_code")) {
        fact("      error ", json_member_text(record, "error_code"), "");
        fact(": ", json_member_text(record, "error_message"), "");
        putchar('\n');
    }
    print_command(record);
}
