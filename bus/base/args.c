/* Options and named arguments from tables. */
#include "args.h"

#include <commandbus/uuid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "duration.h"
#include "fail.h"
#include "nearest.h"
#include "text.h"
#include "utf8.h"

/* How an argument is called in a message. */
static const char *called(const arg_spec *spec, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s%s", spec->positional ? "" : "--", spec->name);
    return buffer;
}

static bool refuse(cb_error *e, const arg_spec *spec, const char *problem)
{
    char name[64];
    return cb_fail(e, CB_MISUSE, "%s %s", called(spec, name, sizeof name), problem);
}

/* A whole number from min to max. */
static bool take_number(const arg_spec *spec, const char *text, int64_t *into, cb_error *e)
{
    char *end = NULL, problem[160];

    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (!*text || *end || errno || value < spec->min || value > spec->max) {
        snprintf(problem, sizeof problem, "must be a whole number from %lld to %lld, not '%.40s'",
                 (long long)spec->min, (long long)spec->max, text);
        return refuse(e, spec, problem);
    }
    *into = value;
    return true;
}

static bool take_int(const arg_spec *spec, const char *text, int *into, cb_error *e)
{
    int64_t value = 0;

    if (!take_number(spec, text, &value, e))
        return false;
    *into = (int)value;
    return true;
}

static bool take_duration(const arg_spec *spec, const char *text, int64_t *into, cb_error *e)
{
    int64_t ms = 0;
    const char *why = NULL;
    char name[64], problem[160], least[DURATION_SIZE], most[DURATION_SIZE];

    if (!duration_parse(text, false, &ms, &why))
        return cb_fail(e, CB_MISUSE, "%s: invalid duration '%.40s'; %s",
                       called(spec, name, sizeof name), text, why);
    if (ms < spec->min || ms > spec->max) {
        snprintf(problem, sizeof problem, "must be %s to %s, not '%.40s'",
                 duration_format(spec->min, least, sizeof least),
                 duration_format(spec->max, most, sizeof most), text);
        return refuse(e, spec, problem);
    }
    *into = ms;
    return true;
}

static bool take_other(const arg_spec *spec, const char *text, void *into, cb_error *e)
{
    char name[64];
    cb_error why = { 0 };

    return spec->read(text, into, &why) ||
           cb_fail(e, why.code, "%s: %s", called(spec, name, sizeof name), why.message);
}

static bool take_choice(const arg_spec *spec, const char *text, const char **into, cb_error *e)
{
    char problem[400] = "must be one of";

    for (const char *const *choice = spec->choices; *choice; choice++) {
        if (strcasecmp(*choice, text) == 0) {
            *into = *choice;
            return true;
        }
        text_append(problem, sizeof problem, "%s %s", choice == spec->choices ? "" : ",", *choice);
    }
    text_append(problem, sizeof problem, "; not '%.40s'", text);
    return refuse(e, spec, problem);
}

static bool take_list(const char *text, arg_list *into, cb_error *e)
{
    const char **items = realloc(into->items, (into->n + 1) * sizeof *items);
    if (!items)
        return fail_memory(e);
    items[into->n++] = text;
    into->items = items;
    return true;
}

static bool take(const arg_spec *spec, const char *text, void *into, cb_error *e)
{
    cb_uuid id;
    void *field = (char *)into + spec->at;

    if (!*text && !spec->may_be_empty)
        return refuse(e, spec, "needs a value, not an empty text (an unset variable?)");
    if (!utf8_is_valid(text))
        return refuse(e, spec, "is not valid UTF-8");

    switch (spec->kind) {
    case ARG_FLAG:
        return refuse(e, spec, "takes no value");
    case ARG_ID:
        if (!cb_uuid_parse(text, &id))
            return refuse(e, spec, "must be a UUID such as 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e");
        *(const char **)field = text;
        return true;
    case ARG_TEXT:
    case ARG_FILE:
        *(const char **)field = text;
        return true;
    case ARG_CHOICE:
        return take_choice(spec, text, field, e);
    case ARG_INT:
        return take_int(spec, text, field, e);
    case ARG_LONG:
        return take_number(spec, text, field, e);
    case ARG_DURATION:
        return take_duration(spec, text, field, e);
    case ARG_LIST:
        return take_list(text, field, e);
    case ARG_OTHER:
        return take_other(spec, text, field, e);
    }
    return refuse(e, spec, "has no kind");
}

const arg_spec *args_find(const arg_spec *specs, const char *word)
{
    size_t length = strcspn(word, "=");

    for (const arg_spec *s = specs; s && s->name; s++) {
        if (!s->positional && length == strlen(s->name) + 2 && strncmp(word, "--", 2) == 0 &&
            strncmp(word + 2, s->name, length - 2) == 0)
            return s;
    }
    return NULL;
}

static bool unknown_option(const char *word, const arg_target *targets, size_t n, cb_error *e)
{
    nearest_word nearest = { .word = word + strspn(word, "-"), .length = strcspn(word, "=") };
    nearest.length -= (size_t)(nearest.word - word);

    for (size_t t = 0; t < n; t++) {
        for (const arg_spec *s = targets[t].specs; s && s->name; s++) {
            if (!s->positional)
                nearest_offer(&nearest, s->name);
        }
    }
    cb_fail(e, CB_MISUSE, "unknown option '%.*s'", (int)strcspn(word, "="), word);
    if (nearest.best)
        fail_hint(e, "Did you mean --%s?", nearest.best);
    return false;
}

/* Once only, but for lists. */
static bool mark_seen(arg_target *target, const arg_spec *spec, cb_error *e)
{
    bool *seen = &target->seen[spec - target->specs];

    if (*seen && spec->kind != ARG_LIST && spec->kind != ARG_FLAG)
        return refuse(e, spec, "is given twice");
    *seen = true;
    return true;
}

static bool lack_value(const arg_spec *spec, void *into, cb_error *e)
{
    char problem[80];

    if (spec->may_lack) {
        *(const char **)(void *)((char *)into + spec->at) = "";
        return true;
    }
    snprintf(problem, sizeof problem, "needs a value: %s", spec->value);
    return refuse(e, spec, problem);
}

/* Takes the option at argv[*i], and its value from there or from the next word. */
static bool take_option(int argc, char **argv, int *i, arg_target *targets, size_t n, cb_error *e)
{
    const char *word = strcmp(argv[*i], "-h") == 0 ? "--help" : argv[*i];
    const char *value = strchr(word, '=');

    for (size_t t = 0; t < n; t++) {
        const arg_spec *spec = args_find(targets[t].specs, word);
        if (!spec)
            continue;
        if (!mark_seen(&targets[t], spec, e))
            return false;
        if (value)
            return take(spec, value + 1, targets[t].into, e);
        if (spec->kind == ARG_FLAG) {
            *(bool *)((char *)targets[t].into + spec->at) = true;
            return true;
        }
        if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
            return lack_value(spec, targets[t].into, e);
        return take(spec, argv[++*i], targets[t].into, e);
    }
    return unknown_option(word, targets, n, e);
}

static bool take_positional(const char *word, arg_target *target, cb_error *e)
{
    for (const arg_spec *s = target->specs; s && s->name; s++) {
        if (s->positional && !target->seen[s - target->specs]) {
            target->seen[s - target->specs] = true;
            return take(s, word, target->into, e);
        }
    }
    return cb_fail(e, CB_MISUSE, "unexpected argument '%.80s'", word);
}

bool args_parse(int argc, char **argv, arg_target *targets, size_t n, cb_error *e)
{
    bool options = true;

    for (int i = 0; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            if (!take_option(argc, argv, &i, targets, n, e))
                return false;
        } else if (!take_positional(argv[i], &targets[0], e)) {
            return false;
        }
    }
    return true;
}

bool args_require(const arg_target *target, cb_error *e)
{
    for (const arg_spec *s = target->specs; s && s->name; s++) {
        if (s->required && !target->seen[s - target->specs])
            return refuse(e, s, "is missing");
    }
    return true;
}

void args_done(arg_target *target)
{
    for (const arg_spec *s = target->specs; s && s->name; s++) {
        if (s->kind == ARG_LIST)
            free(((arg_list *)((char *)target->into + s->at))->items);
    }
}

void args_help(FILE *out, const arg_spec *specs)
{
    for (const arg_spec *s = specs; s && s->name; s++) {
        char left[64];
        int width = snprintf(left, sizeof left, "%s%s%s%s", s->positional ? "" : "--", s->name,
                             s->value ? " " : "", s->value ? s->value : "");
        if (width <= 24)
            fprintf(out, "  %-24s  %s\n", left, s->help);
        else
            fprintf(out, "  %s\n  %24s  %s\n", left, "", s->help);
    }
}

void args_help_exits(FILE *out, const char *title, const arg_exit *exits)
{
    int column = fprintf(out, "%s:", title);

    for (const arg_exit *x = exits; x->code; x++) {
        char item[128];
        int width =
            snprintf(item, sizeof item, " %s %s%s", x->code, x->meaning, x[1].code ? " ·" : "");
        if (column + width >= 90)
            column = fprintf(out, "\n ") - 1;
        column += fprintf(out, "%s", item);
    }
    fputc('\n', out);
}
