/* The command line: one word a line, for a table with an argument of every kind. Refused, or what
 * each argument has is of its kind and within its limits. */
#include "fuzz.h"

#include <ctype.h>

#include <commandbus/uuid.h>

#include "args.h"
#include "figures.h"
#include "utf8.h"

typedef struct {
    bool quiet;
    const char *text, *file, *id, *choice;
    int number;
    int64_t duration;
    double rate;
    moment_arg time;
    arg_list list;
    const char *domain, *extra;
} arguments;

#define AT(member) .at = offsetof(arguments, member)

static const char *const choices[] = { "PENDING", "COMPLETED", "FAILED", NULL };
static const arg_spec table[] = {
    { "quiet", ARG_FLAG, AT(quiet) },
    { "text", ARG_TEXT, AT(text), .value = "T" },
    { "file", ARG_FILE, AT(file), .value = "F" },
    { "id", ARG_ID, AT(id), .value = "ID" },
    { "status", ARG_CHOICE, AT(choice), .value = "S", .choices = choices },
    { "number", ARG_INT, AT(number), .value = "N", .min = -5, .max = 1000 },
    { "timeout", ARG_DURATION, AT(duration), .value = "D", .min = 1000, .max = 86400000 },
    { "rate", ARG_OTHER, AT(rate), .value = "R", .read = frequency_read },
    { "since", ARG_OTHER, AT(time), .value = "T", .read = moment_read },
    { "set", ARG_LIST, AT(list), .value = "K=V" },
    { "DOMAIN", ARG_TEXT, AT(domain), .positional = true, .required = true },
    { "EXTRA", ARG_TEXT, AT(extra), .positional = true },
    { 0 },
};

static bool is_text(const char *text)
{
    return !text || (*text && utf8_is_valid(text));
}

/* One of our intervals, or a date in front: the database judges whatever follows. */
static bool is_time(const char *text)
{
    static const char form[] = "dddd-dd-dd";

    if (!*text || strstr(text, " seconds") || strstr(text, " days"))
        return true;
    for (size_t i = 0; form[i]; i++) {
        if (form[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != '-')
            return false;
    }
    return true;
}

static void check(const arguments *a, const bool seen[])
{
    cb_uuid id;
    bool is_choice = !a->choice;

    for (size_t i = 0; choices[i]; i++)
        is_choice = is_choice || a->choice == choices[i];
    FUZZ_CHECK(is_choice, "%s", a->choice);
    FUZZ_CHECK(is_text(a->text) && is_text(a->file) && is_text(a->domain), "not a text");
    FUZZ_CHECK(!a->id || cb_uuid_parse(a->id, &id), "%s", a->id);
    FUZZ_CHECK(a->number >= -5 && a->number <= 1000, "%d", a->number);
    FUZZ_CHECK(!seen[6] || (a->duration >= 1000 && a->duration <= 86400000), "duration");
    FUZZ_CHECK(!seen[7] || (a->rate > 0 && a->rate <= 1e6), "%g", a->rate);
    FUZZ_CHECK(memchr(a->time.text, '\0', sizeof a->time.text) && is_time(a->time.text), "%.48s",
               a->time.text);
    for (size_t i = 0; i < a->list.n; i++)
        FUZZ_CHECK(is_text(a->list.items[i]), "not a text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_SPLIT(in, data, size);
    arguments a = { 0 };
    arg_target target = { .specs = table, .into = &a };
    cb_error e = { 0 };

    if (args_parse(in.n, in.line, &target, 1, &e)) {
        check(&a, target.seen);
        FUZZ_CHECK(args_require(&target, &e) == (a.domain != NULL), "required");
    } else {
        fuzz_refused(&e, CB_MISUSE);
    }
    args_done(&target);
    return 0;
}
