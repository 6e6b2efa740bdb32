/* What to do about a process next, with the command lines. */
#include "output.h"
#include "process_view.h"

#include <stdio.h>
#include <string.h>

#define LATE_SECONDS 5.0 /* due for so long, and nobody has taken it */

/* A command line and what it is for. {id} is the process, {command} and {domain} its open
 * command; a line that names one is left out when there is none. */
typedef struct {
    const char *purpose, *line;
} action;

#define GO_ON                                                   \
    {                                                           \
        "go on", "commandbus process retry {id} --reason '...'" \
    }
#define UNDO                                                       \
    {                                                              \
        "undo it", "commandbus process cancel {id} --reason '...'" \
    }
#define GIVE_UP                                                                       \
    {                                                                                 \
        "give up", "commandbus process cancel {id} --reason '...' --no-compensations" \
    }
#define BY_HAND                                                                         \
    {                                                                                   \
        "was done", "commandbus process complete {id} --set FIELD=VALUE --reason '...'" \
    }
#define LOOK                                        \
    {                                               \
        "look", "commandbus command show {command}" \
    }
#define ANSWER                                                             \
    {                                                                      \
        "answer", "commandbus process respond {id} NAME --payload '{...}'" \
    }
#define WORKERS                       \
    {                                 \
        "workers", "commandbus fleet" \
    }
#define TSQ_DONE                                                                  \
    {                                                                             \
        "was done", "commandbus tsq complete {domain} {command} --result '{...}'" \
    }

typedef struct {
    const char *code; /* NULL: any other */
    const char *text;
    action actions[5];
} advice;

/* In the TSQ, by error code. */
static const advice parked[] = {
    { "COMMAND_IN_TSQ",
      "Its command failed for good. A retry lets the command run again too.",
      { LOOK, GO_ON, TSQ_DONE, UNDO } },
    { "COMMAND_STEP_TIMEOUT",
      "Its command was not answered in time. A retry waits for it again.",
      { LOOK, GO_ON, UNDO } },
    { "OUTCOME_UNKNOWN",
      "It left a command behind whose outcome nobody knows. Find out whether it was done downstream.",
      { LOOK, GO_ON, GIVE_UP } },
    { "WAIT_TIMEOUT",
      "No response came in time. A retry starts the time anew; an answer can be given before.",
      { ANSWER, GO_ON, UNDO } },
    { "DEADLINE_EXCEEDED",
      "It was too late. A retry goes on without a deadline, or with a new one.",
      { GO_ON,
        { "new time", "commandbus process retry {id} --reason '...' --deadline +4h" },
        UNDO } },
    { "COMPENSATION_FAILED",
      "Undoing it failed. A retry goes on with what failed; giving up leaves the rest as it is.",
      { LOOK, GO_ON, GIVE_UP } },
    { "NON_DETERMINISTIC",
      "The code does not do what is recorded. Run workers with code that does, then retry.",
      { { "check", "commandbus-worker --replay {id}" }, GO_ON, UNDO } },
    { "RETRIES_EXHAUSTED_CRASH_RECOVERY",
      "A worker ended while a step of it ran. Find out whether the step was done downstream.",
      { GO_ON, BY_HAND, UNDO } },
    { "PROCESS_TOO_LARGE",
      "It holds more than a worker may load. Give it up, or raise content_limit of its domain and the "
      "memory of its workers, then retry.",
      { GIVE_UP, GO_ON } },
    { NULL, "Repair the cause, then decide.", { GO_ON, BY_HAND, UNDO } },
};

static const advice command_waits = {
    .text = "It goes on with the reply to its command.",
    .actions = { LOOK },
};
static const advice command_parked = {
    .text = "Its command is in the troubleshooting queue: the decision is about that.",
    .actions = { LOOK,
                 { "run again", "commandbus tsq retry {domain} {command} --reason '...'" },
                 TSQ_DONE },
};
static const advice answer_awaited = {
    .text = "It goes on when a response fulfils what it waits for.",
    .actions = { ANSWER },
};
static const advice untaken = {
    .text = "No worker takes it. Is there one with its type, in its version?",
    .actions = { WORKERS, { "health", "commandbus doctor" } },
};
static const advice decided = {
    .text = "An operator has decided; a worker acts on it next.",
    .actions = { WORKERS },
};
static const advice came_late = {
    .text = "A command succeeded after the process had ended: nobody undoes what it booked.",
    .actions = { { "all of it", "commandbus process show {id} --json" } },
};

static void advice_print_line(const char *text, const process_view *v, json_object *command)
{
    const struct {
        const char *name, *value;
    } ids[] = { { "{id}", process_text(v, "process_id") },
                { "{command}", json_member_text(command, "command_id") },
                { "{domain}", json_member_text(command, "domain") } };

    while (*text) {
        size_t i = 0, n = sizeof ids / sizeof *ids;
        while (i < n && strncmp(text, ids[i].name, strlen(ids[i].name)) != 0)
            i++;
        if (i < n)
            output_plain(stdout, ids[i].value ? ids[i].value : "-");
        else
            putchar(*text);
        text += i < n ? strlen(ids[i].name) : 1;
    }
}

static void advice_print(const advice *a, const process_view *v)
{
    json_object *command = json_member_of(process_open_record(v), "command");

    printf("\nwhat to do: %s\n", a->text);
    for (size_t i = 0; i < sizeof a->actions / sizeof *a->actions && a->actions[i].line; i++) {
        if (!command && strstr(a->actions[i].line, "{command}"))
            continue;
        printf("  %-10s ", a->actions[i].purpose);
        advice_print_line(a->actions[i].line, v, command);
        putchar('\n');
    }
}

static const advice *advice_find_parked(const process_view *v)
{
    size_t i = 0;

    while (parked[i].code && !process_is(v, "error_code", parked[i].code))
        i++;
    return &parked[i];
}

static bool advice_has_decision(const process_view *v)
{
    for (size_t i = 0; i < json_object_array_length(v->inbox); i++) {
        if (json_member_is(json_object_array_get_idx(v->inbox, i), "kind", "OPERATOR"))
            return true;
    }
    return false;
}

static bool advice_has_late_success(const process_view *v)
{
    for (size_t i = 0; i < json_object_array_length(v->events); i++) {
        json_object *event = json_object_array_get_idx(v->events, i);
        if (json_member_is(event, "event", "LATE_REPLY") &&
            json_member_is(json_member_of(event, "details"), "outcome", "SUCCESS"))
            return true;
    }
    return false;
}

/* It waits for something outside: what, the open record knows. */
static const advice *advice_find_awaited(const process_view *v)
{
    json_object *record = process_open_record(v), *command = json_member_of(record, "command");

    if (command)
        return json_member_is(command, "status", "IN_TROUBLESHOOTING_QUEUE") ? &command_parked
                                                                             : &command_waits;
    return json_member_is(record, "kind", "WAIT") ? &answer_awaited : NULL;
}

static const advice *advice_find(const process_view *v)
{
    double until_due = 0;
    bool late = process_until(v, "wake_at", &until_due) && until_due < -LATE_SECONDS;

    if (late && !process_is(v, "running", "t"))
        return &untaken;
    if (advice_has_decision(v))
        return &decided;
    if (process_is(v, "status", "WAITING_FOR_TSQ"))
        return advice_find_parked(v);
    if (process_text(v, "completed_at"))
        return advice_has_late_success(v) ? &came_late : NULL;
    return process_is(v, "running", "t") ? NULL : advice_find_awaited(v);
}

void process_print_advice(const process_view *v)
{
    const advice *a = advice_find(v);

    if (a)
        advice_print(a, v);
}
