/* Options and named arguments. What every kind refuses is tried by fuzz_args and by
 * tests/cli/usage_test.sh. */
#include "args.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    bool quiet;
    const char *text, *id, *choice, *perhaps, *empty;
    int number;
    int64_t large, timeout;
    double half;
    arg_list list;
    const char *domain;
} arguments;

static bool read_half(const char *text, void *field, cb_error *e)
{
    if (strcmp(text, "half") != 0)
        return cb_fail(e, CB_MISUSE, "invalid half '%s'", text);
    *(double *)field = 0.5;
    return true;
}

#define AT(field) offsetof(arguments, field)
static const char *const choices[] = { "PENDING", "FAILED", NULL };
static const arg_spec table[] = {
    { "quiet", ARG_FLAG, AT(quiet), NULL, .help = "say less" },
    { "text", ARG_TEXT, AT(text), "TEXT", .help = "any" },
    { "id", ARG_ID, AT(id), "ID", .help = "an id" },
    { "status", ARG_CHOICE, AT(choice), "STATUS", .help = "a status", .choices = choices },
    { "replay", ARG_TEXT, AT(perhaps), "[ID]", .help = "perhaps one", .may_lack = true },
    { "profile", ARG_TEXT, AT(empty), "P", .help = "perhaps none", .may_be_empty = true },
    { "number", ARG_INT, AT(number), "N", .help = "a number", .min = -5, .max = 1000 },
    { "large", ARG_LONG, AT(large), "N", .help = "a large number", .max = INT64_MAX },
    { "timeout", ARG_DURATION, AT(timeout), "TIME", .help = "a time", .min = 1000,
      .max = 86400000 },
    { "half", ARG_OTHER, AT(half), "HALF", .help = "a half", .read = read_half },
    { "set", ARG_LIST, AT(list), "PATH=VALUE", .help = "some" },
    { "DOMAIN", ARG_TEXT, AT(domain), .help = "which", .positional = true, .required = true },
    { 0 },
};

#define WORDS(...)                    \
    (char *[])                        \
    {                                 \
        (char *)"", __VA_ARGS__, NULL \
    }

/* The first word is there for macros only. */
static bool parse(char **words, arguments *into, cb_error *e)
{
    arg_target target = { .specs = table, .into = into };
    int n = 0;

    *into = (arguments){ 0 };
    while (words[n + 1])
        n++;
    bool good = args_parse(n, words + 1, &target, 1, e) && args_require(&target, e);
    return good;
}

static void expect_args_refused(const char *message, const char *hint, char **words)
{
    arguments a;
    cb_error e = { 0 };

    cr_expect(!parse(words, &a, &e), "%s", message);
    cr_expect_eq(e.code, CB_MISUSE);
    cr_expect_str_eq(e.message, message);
    cr_expect_str_eq(e.hint, hint);
    args_done(&(arg_target){ .specs = table, .into = &a });
}

Test(args, values_stand_behind_an_equals_sign_or_in_the_next_word)
{
    arguments a;
    cb_error e = { 0 };

    cr_assert(parse(WORDS("--text=a=b", "fx", "--number", "-5", "--quiet", "--large",
                          "9223372036854775807", "--timeout", "90s", "--half=half", "--status",
                          "failed", "--set", "a=1", "--set=b=2"),
                    &a, &e),
              "%s", e.message);

    cr_expect(a.quiet);
    cr_expect_str_eq(a.text, "a=b");
    cr_expect_str_eq(a.domain, "fx");
    cr_expect_eq(a.number, -5);
    cr_expect_eq(a.large, INT64_MAX);
    cr_expect_eq(a.timeout, 90000);
    cr_expect_eq(a.half, 0.5);
    cr_expect_eq(a.choice, choices[1]);
    cr_expect_eq(a.list.n, 2);
    cr_expect_str_eq(a.list.items[1], "b=2");
    args_done(&(arg_target){ .specs = table, .into = &a });
}

Test(args, a_text_may_lack_its_value_or_be_empty_where_its_table_says_so)
{
    arguments a;
    cb_error e = { 0 };

    cr_assert(parse(WORDS("fx", "--replay", "--quiet", "--profile="), &a, &e), "%s", e.message);
    cr_expect_str_eq(a.perhaps, "");
    cr_expect(a.quiet);
    cr_expect_str_eq(a.empty, "");
    cr_assert(parse(WORDS("fx", "--replay", "17", "--profile", ""), &a, &e), "%s", e.message);
    cr_expect_str_eq(a.perhaps, "17");
    cr_assert(parse(WORDS("fx"), &a, &e));
    cr_expect_null(a.perhaps);
}

Test(args, after_two_dashes_nothing_is_an_option)
{
    arguments a;
    cb_error e = { 0 };

    cr_assert(parse(WORDS("--", "--text"), &a, &e), "%s", e.message);
    cr_expect_str_eq(a.domain, "--text");
}

Test(args, what_is_wrong_is_said)
{
    expect_args_refused("unknown option '--txet'", "Did you mean --text?", WORDS("--txet=1", "fx"));
    expect_args_refused("unknown option '--frobnicate'", "", WORDS("--frobnicate", "fx"));
    expect_args_refused("unexpected argument 'two'", "", WORDS("one", "two"));
    expect_args_refused("DOMAIN is missing", "", WORDS("--quiet"));
    expect_args_refused("--text needs a value: TEXT", "", WORDS("fx", "--text"));
    expect_args_refused("--text needs a value: TEXT", "", WORDS("fx", "--text", "--quiet"));
    expect_args_refused("--text needs a value, not an empty text (an unset variable?)", "",
                        WORDS("fx", "--text="));
    expect_args_refused("--quiet takes no value", "", WORDS("fx", "--quiet=1"));
    expect_args_refused("--text is given twice", "", WORDS("fx", "--text=a", "--text=b"));
    expect_args_refused("--number must be a whole number from -5 to 1000, not '2x'", "",
                        WORDS("fx", "--number", "2x"));
    expect_args_refused("--timeout: invalid duration '5'; add a unit: 500ms, 30s, 5m, 2h or 30d",
                        "", WORDS("fx", "--timeout", "5"));
    expect_args_refused("--timeout must be 1s to 1d, not '2d'", "", WORDS("fx", "--timeout", "2d"));
    expect_args_refused("--status must be one of PENDING, FAILED; not 'x'", "",
                        WORDS("fx", "--status", "x"));
    expect_args_refused("--half: invalid half 'x'", "", WORDS("fx", "--half", "x"));
    expect_args_refused("--text is not valid UTF-8", "", WORDS("fx", "--text=\xff"));
}

Test(args, help_has_a_line_for_each)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    args_help(out, table);
    fclose(out);
    cr_expect(strstr(text, "  --quiet                   say less\n"), "%s", text);
    cr_expect(strstr(text, "  --number N                a number\n"), "%s", text);
    cr_expect(strstr(text, "  DOMAIN                    which\n"), "%s", text);
    free(text);
}

Test(args, exit_codes_stand_in_lines_that_a_terminal_shows)
{
    static const arg_exit exits[] = {
        { "0", "done" },
        { "1", "refused, for one of the many reasons that there are" },
        { "2", "wrong usage, of which there is hardly less" },
        { 0 },
    };
    char text[400] = "";
    FILE *out = fmemopen(text, sizeof text, "w");

    args_help_exits(out, "exit codes", exits);
    fclose(out);

    cr_assert_str_eq(
        text, "exit codes: 0 done · 1 refused, for one of the many reasons that there are ·\n"
              "  2 wrong usage, of which there is hardly less\n");
}
