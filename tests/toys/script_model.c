/* The model: what a script may have come to. */
#include "script_model.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "script_story.h"

static int n_ops(const story *s)
{
    return (int)json_object_array_length(s->ops);
}

static json_object *op_at(const story *s, int i)
{
    return json_object_array_get_idx(s->ops, (size_t)i);
}

static bool has_effect(const story *s, int i)
{
    return story_is(op_at(s, i), "k", "step") || story_is(op_at(s, i), "k", "cmd");
}

/* Left out, as the numbers of the side effects say. */
static bool is_skipped(const story *s, int op)
{
    int chance = 0;

    for (int i = 0; i < op; i++) {
        json_object *r = story_record(s, 's', i);
        if (story_is(op_at(s, i), "k", "side"))
            chance = story_number(r, "result");
        if (story_is(op_at(s, i), "k", "version"))
            chance += story_number(r, "result");
        if (story_is(op_at(s, i), "k", "skip") && chance % 2 && ++i == op)
            return true;
    }
    return false;
}

static bool ended_well(const story *s, char direction, int op)
{
    return story_last(s, direction, op) == 'S' || story_by_hand(s, direction, op);
}

/* ---- order ---- */

/* Everything before an operation that began has its end. */
static void check_before(story *s, int op)
{
    for (int i = 0; i < op; i++) {
        if (!has_effect(s, i) || is_skipped(s, i))
            continue;
        if (!story_is_completed(story_record(s, 's', i)))
            story_wrong(s, "operation %d began, but %d is not COMPLETED", op, i);
        else if (!ended_well(s, 's', i))
            story_wrong(s, "operation %d began, but the last effect of %d is %c", op, i,
                        story_last(s, 's', i));
    }
}

static void check_order(story *s)
{
    const effect *before = NULL;

    for (int i = 0; i < s->n_effects; before = &s->effects[i++]) {
        const effect *e = &s->effects[i];
        if (e->direction == 's')
            check_before(s, e->op);
        /* But for a command that an operator gave up as OUTCOME_UNKNOWN while it still had
         * attempts: a late success is told (LATE_REPLY), and nobody can recall it. */
        if (before && before->direction == 'u' && e->direction == 's' &&
            !story_is(story_record(s, 's', e->op), "status", "ABANDONED"))
            story_wrong(s, "operation %d was done after something was undone", e->op);
        if (before && before->direction == 's' && e->direction == 's' && before->op > e->op)
            story_wrong(s, "operation %d was done after %d", e->op, before->op);
        if (before && before->direction == 'u' && e->direction == 'u' && before->op < e->op)
            story_wrong(s, "operation %d was undone after %d", e->op, before->op);
        if (before && before->direction == 'u' && e->direction == 'u' && before->op != e->op &&
            !ended_well(s, 'u', before->op))
            story_wrong(s, "operation %d was undone before %d was", e->op, before->op);
        if (e->direction == 'u' && !story_is_completed(story_record(s, 's', e->op)))
            story_wrong(s, "operation %d was undone, but never done", e->op);
    }
}

/* ---- how often ---- */

static int commands_retried(const story *s)
{
    int n = 0;

    for (size_t i = 0; i < json_object_array_length(s->commands); i++)
        n += story_number(json_object_array_get_idx(s->commands, i), "retries");
    return n;
}

static bool by_command(const story *s, char direction, int op)
{
    json_object *o = op_at(s, op);

    return direction == 's' ? story_is(o, "k", "cmd")
                            : story_is(o, "undo", "cmd") || story_is(o, "undo", "result");
}

/* So many charged attempts are allowed. */
static int most_attempts(const story *s, char direction, int op)
{
    json_object *r = story_record(s, direction, op), *o = op_at(s, op);
    int m = direction == 's' || story_is(o, "k", "step") ? story_number(o, "m") : 1;

    if (direction == 'u' && by_command(s, direction, op))
        m = 3; /* the domain's */
    if (by_command(s, direction, op))
        return m * ((r ? story_number(r, "send_no") : 1) + commands_retried(s));
    return m * (1 + story_decisions(s, "RETRY") +
                (direction == 'u' ? story_decisions(s, "CANCEL") : 0));
}

static void check_count(story *s, char direction, int op)
{
    int charged = 0, keys = 0;
    const char *key = "";
    json_object *r = story_record(s, direction, op);

    for (int i = 0; i < s->n_effects; i++) {
        const effect *e = &s->effects[i];
        if (e->direction != direction || e->op != op)
            continue;
        charged += e->letter != 'I';
        keys += strcmp(key, e->key) != 0;
        key = e->key;
    }
    if (charged > most_attempts(s, direction, op))
        story_wrong(s, "%c%d was done %d times, at most %d are allowed", direction, op, charged,
                    most_attempts(s, direction, op));
    int most = by_command(s, direction, op) && r ? story_number(r, "send_no") : 1;
    if (keys > most)
        story_wrong(s, "%c%d was done under %d keys, not %d", direction, op, keys, most);
    if (story_is_completed(r) && !ended_well(s, direction, op))
        story_wrong(s, "%c%d is COMPLETED, but its last effect is %c", direction, op,
                    story_last(s, direction, op));
}

static void check_counts(story *s)
{
    for (int i = 0; i < n_ops(s); i++) {
        if (has_effect(s, i))
            check_count(s, 's', i);
        if (!story_is(op_at(s, i), "undo", "") && has_effect(s, i))
            check_count(s, 'u', i);
    }
}

/* ---- the state is what the records say ---- */

static void patch(json_object *state, json_object *record, const char *key)
{
    json_object *changes = NULL;

    if (!json_object_object_get_ex(record, key, &changes) || !changes)
        return;
    json_object_object_foreach(changes, name, value)
        json_object_object_add(state, name, json_object_get(value));
}

static void pass_during(const story *s, json_object *state, json_object *call)
{
    for (size_t i = 0; i < json_object_array_length(s->history); i++) {
        json_object *r = json_object_array_get_idx(s->history, i);
        if (!story_is(r, "kind", "RESPONSE") ||
            story_number(r, "during") != story_number(call, "ordinal"))
            continue;
        patch(state, r, "opening");
        patch(state, r, "patch");
    }
}

static json_object *fold(const story *s)
{
    json_object *state = NULL, *initial = NULL;

    json_object_object_get_ex(s->row, "initial_state", &initial);
    json_object_deep_copy(initial, &state, NULL);
    for (size_t i = 0; i < json_object_array_length(s->history); i++) {
        json_object *r = json_object_array_get_idx(s->history, i);
        if (story_is(r, "kind", "RESPONSE") && story_number(r, "during") > 0)
            continue;
        patch(state, r, "opening");
        if (!story_is(r, "kind", "RESPONSE"))
            pass_during(s, state, r);
        patch(state, r, "patch");
    }
    return state;
}

static void check_state(story *s)
{
    static const char *const names[] = { "process_id", "log",   "ops",        "go",
                                         "trace",      "heard", "on_deadline" };
    OWNED(json_object) folded = fold(s);

    for (size_t i = 0; i < CB_COUNT(names); i++) {
        json_object *found = NULL, *expected = NULL;
        json_object_object_get_ex(s->state, names[i], &found);
        json_object_object_get_ex(folded, names[i], &expected);
        /* What execute() changes behind the last record is kept with COMPLETED (STP.14). */
        if ((!found && !expected) || (i == 0 && story_is(s->row, "status", "COMPLETED")))
            continue;
        if (!json_object_equal(found, expected) && !(json_object_get_int(found) == 0 && !expected))
            story_wrong(s, "state.%s is %s, but its records make it %s", names[i],
                        json_object_to_json_string(found), json_object_to_json_string(expected));
    }
}

/* ---- responses ---- */

static void check_heard(story *s, int sent)
{
    OWNED(json_object) folded = fold(s);
    char expected[2000] = "", *end = expected;

    for (int i = 1; i <= sent && end < expected + sizeof expected - 20; i++)
        end += sprintf(end, "%d ", i);
    if (!story_is(s->state, "heard", expected))
        story_wrong(s, "responses '%s' were sent, '%s' were heard", expected,
                    story_text(s->state, "heard"));
}

/* ---- the end ---- */

static void check_trace(story *s)
{
    char expected[200] = "", *end = expected;

    for (int i = 0; i < n_ops(s); i++) {
        bool counts = has_effect(s, i) || story_is(op_at(s, i), "k", "local");
        json_object *r = story_record(s, 's', i);
        if (is_skipped(s, i)) {
            if (r)
                story_wrong(s, "operation %d was to be left out", i);
            continue;
        }
        if (counts)
            end += sprintf(end, "s%d ", i);
        if ((counts || story_is(op_at(s, i), "k", "wait")) && !story_is_completed(r))
            story_wrong(s, "it is COMPLETED, but operation %d is not", i);
        if (story_is(op_at(s, i), "k", "decline"))
            story_wrong(s, "it is COMPLETED, but operation %d declines", i);
    }
    if (!story_is(s->state, "trace", expected))
        story_wrong(s, "its steps were '%s', not '%s'", story_text(s->state, "trace"), expected);
    if (!story_is(s->state, "tail", "true"))
        story_wrong(s, "what execute() changed last is not in the state");
}

static bool was_declined(const story *s)
{
    char last = 0;

    for (int i = 0; i < s->n_effects; i++)
        if (s->effects[i].direction == 's')
            last = s->effects[i].letter;
    for (int i = 0; i < n_ops(s) && last != 'B'; i++)
        if (story_is(op_at(s, i), "k", "decline"))
            last = 'B';
    return last == 'B';
}

static bool command_was_canceled(const story *s)
{
    for (size_t i = 0; i < json_object_array_length(s->commands); i++)
        if (story_number(json_object_array_get_idx(s->commands, i), "canceled") > 0)
            return true;
    return false;
}

/* Once, and once more for each new one that an operator gave. */
static void check_deadline(story *s)
{
    int most = 1;

    for (size_t i = 0; i < json_object_array_length(s->history); i++) {
        json_object *r = json_object_array_get_idx(s->history, i), *request = NULL;
        json_object_object_get_ex(r, "result", &request);
        most += story_is(r, "kind", "OPERATOR") && story_is(request, "new_deadline", "true");
    }
    if (story_number(s->row, "overdue") > most)
        story_wrong(s, "its deadline had its effect %d times", story_number(s->row, "overdue"));
}

static void check_reason(story *s)
{
    const char *code = story_text(s->row, "error_code");
    bool failed = story_is(s->row, "status", "FAILED");

    if (strcmp(code, "DEADLINE_EXCEEDED") == 0) {
        if (story_number(s->row, "overdue") == 0 ||
            !story_is(s->state, "on_deadline", failed ? "FAIL" : "COMPENSATE"))
            story_wrong(s, "it ended for a deadline that does not say so");
    } else if (failed || !((strcmp(code, "DECLINED") == 0 && was_declined(s)) ||
                           (strcmp(code, "CANCELED") == 0 && command_was_canceled(s))))
        story_wrong(s, "there is no reason to be %s with %s", story_text(s->row, "status"), code);
}

/* A command of this operation has succeeded. One that an operator canceled after its worker died
 * has not, whatever it did: he has looked. */
static bool has_booked(const story *s, int op)
{
    for (int i = 0; i < s->n_effects; i++) {
        const effect *e = &s->effects[i];
        for (size_t j = 0; j < json_object_array_length(s->commands); j++) {
            json_object *c = json_object_array_get_idx(s->commands, j);
            if (e->direction == 's' && e->op == op && story_is(c, "command_id", e->key) &&
                story_is(c, "status", "COMPLETED"))
                return true;
        }
    }
    return false;
}

/* Each record that owes is paid once; what was booked is given back. */
static void check_paid(story *s)
{
    for (int i = 0; i < n_ops(s); i++) {
        json_object *r = story_record(s, 's', i), *owes = NULL;
        bool undoable = has_effect(s, i) && !story_is(op_at(s, i), "undo", "");
        if (!undoable)
            continue;
        json_object_object_get_ex(r, "owes", &owes);
        if (story_is_completed(r) && !owes)
            story_wrong(s, "operation %d is COMPLETED and owes nothing", i);
        if (story_is_completed(r) && !story_is_completed(story_record(s, 'u', i)))
            story_wrong(s, "operation %d was not undone", i);
        if (has_booked(s, i) && !story_is_forced(s) && !ended_well(s, 'u', i))
            story_wrong(s, "what operation %d booked was left behind", i);
    }
}

static bool was_to_be_undone(const story *s)
{
    bool undo = story_is(s->row, "status", "COMPENSATED");

    for (size_t i = 0; i < json_object_array_length(s->history); i++) {
        json_object *r = json_object_array_get_idx(s->history, i), *request = NULL;
        json_object_object_get_ex(r, "result", &request);
        if (story_is(s->row, "status", "CANCELED") && story_is(r, "kind", "OPERATOR") &&
            story_is(r, "name", "CANCEL"))
            undo = story_is(request, "run_compensations", "true");
    }
    return undo;
}

static void check_end(story *s)
{
    const char *status = story_text(s->row, "status");

    if (strcmp(status, "COMPLETED") == 0 && story_decisions(s, "COMPLETE") == 0)
        check_trace(s);
    else if (strcmp(status, "CANCELED") == 0 && story_decisions(s, "CANCEL") == 0)
        story_wrong(s, "nobody has canceled it");
    else if (strcmp(status, "COMPENSATED") == 0 || strcmp(status, "FAILED") == 0)
        check_reason(s);
    else if (strcmp(status, "COMPLETED") != 0 && strcmp(status, "CANCELED") != 0)
        story_wrong(s, "%s is not a final status", status);
    if (was_to_be_undone(s))
        check_paid(s);
    if ((strcmp(status, "COMPLETED") == 0 || strcmp(status, "CANCELED") == 0) !=
        story_is(s->state, "ended", "true"))
        story_wrong(s, "its hook was %scalled", strcmp(status, "COMPENSATED") ? "not " : "");
}

/* Nothing is left lying about. */
static void check_left_over(story *s)
{
    if (*story_text(s->row, "lease_owner"))
        story_wrong(s, "it is still leased");
    if (story_number(s->row, "inbox") > 0)
        story_wrong(s, "%d items are left in its inbox", story_number(s->row, "inbox"));
    for (size_t i = 0; i < json_object_array_length(s->commands); i++) {
        json_object *c = json_object_array_get_idx(s->commands, i);
        const char *status = story_text(c, "status");
        if (strcmp(status, "COMPLETED") != 0 && strcmp(status, "FAILED") != 0 &&
            strcmp(status, "CANCELED") != 0 && !story_is_forced(s))
            story_wrong(s, "command %s was left behind, %s", story_text(c, "command_id"), status);
    }
}

/* ---- telling ---- */

static void model_tell(story *s)
{
    fprintf(s->problems, "status %s %s (%s)\nscript %s\n", story_text(s->row, "status"),
            story_text(s->row, "error_code"), story_text(s->row, "error_message"),
            json_object_to_json_string(s->ops));
    for (size_t i = 0; i < json_object_array_length(s->history); i++)
        fprintf(s->problems, "  %s\n",
                json_object_to_json_string_ext(json_object_array_get_idx(s->history, i),
                                               JSON_C_TO_STRING_PLAIN));
    fprintf(s->problems, "commands %s\neffects", json_object_to_json_string(s->commands));
    for (int i = 0; i < s->n_effects; i++)
        fprintf(s->problems, " %c%d:%c", s->effects[i].direction, s->effects[i].op,
                s->effects[i].letter);
    fprintf(s->problems, "\nstate %s\n", json_object_to_json_string(s->state));
}

char *script_problems(PGconn *conn, const char *process_id, const char *log, int sent)
{
    story s;
    char *text = NULL;
    size_t size;

    story_read(&s, conn, process_id, log);
    s.problems = open_memstream(&text, &size);
    check_order(&s);
    check_counts(&s);
    check_state(&s);
    check_heard(&s, sent);
    check_end(&s);
    check_deadline(&s);
    check_left_over(&s);
    model_tell(&s);
    fclose(s.problems);
    int n = s.n_problems;
    story_done(&s);
    if (n > 0)
        return text;
    free(text);
    return NULL;
}
