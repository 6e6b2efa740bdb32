/* Manual pages from tables. What groff says of whole pages: tests/cli/man_test.sh. */
#include "manual.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static char *page;
static size_t length;
static FILE *out;

static void open_page(void)
{
    out = open_memstream(&page, &length);
    cr_assert(out);
}

static void free_page(void)
{
    free(page);
}

TestSuite(manual, .init = open_page, .fini = free_page);

static void expect_page(const char *expected)
{
    cr_assert_eq(fclose(out), 0);
    cr_expect_str_eq(page, expected);
}

Test(manual, a_page_begins_with_its_title_and_one_line_about_the_program)
{
    manual_begin(out, "command-bus", "1.2.3", "Sends commands, and more.\n");

    expect_page(".TH COMMAND\\-BUS 1 \"\" \"commandbus 1.2.3\" \"commandbus\"\n"
                ".nh\n.ad l\n"
                ".SH \"NAME\"\ncommand\\-bus \\- sends commands, and more\n");
}

Test(manual, nothing_in_a_text_is_taken_for_roff)
{
    manual_text(out, "%s", ".../sql is \\fBbold\\fR, 'a' \"b\" `c` ^d ~e --f\n'.g\n");

    expect_page(".PP\n\\&.../sql is \\(rsfBbold\\(rsfR, \\(aqa\\(aq \\(dqb\\(dq \\(gac\\(ga "
                "\\(had \\(tie \\-\\-f\n\\(aq.g\n");
}

Test(manual, other_characters_go_by_number_and_malformed_ones_are_marked)
{
    manual_text(out, "%s", "0 · 1 ≥ 2 \xff 🙂");

    expect_page(".PP\n0 \\[u00B7] 1 \\[u2265] 2 \\[u003F] \\[u1F642]\n");
}

Test(manual, an_empty_line_begins_a_paragraph_and_indentation_does_not_count)
{
    manual_text(out, "one\n  still one\n\ntwo, %d\n", 2);

    expect_page(".PP\none\nstill one\n.PP\ntwo, 2\n");
}

Test(manual, an_example_keeps_its_lines_without_the_indentation_of_help)
{
    manual_example(out, "  send --data '{}'\n    more\n");

    expect_page(".PP\n.RS 4\n.nf\nsend \\-\\-data \\(aq{}\\(aq\n  more\n.fi\n.RE\n");
}

Test(manual, a_synopsis_has_the_positional_arguments)
{
    manual_synopsis(out, "bus send",
                    (const arg_spec[]){ { "DOMAIN", .positional = true, .required = true },
                                        { "json", .help = "JSON" },
                                        { "TYPE", .positional = true },
                                        { 0 } });

    expect_page(".PP\n\\fBbus send\\fR \\fIDOMAIN\\fR [\\fITYPE\\fR] [\\fIoptions\\fR]\n");
}

Test(manual, options_say_what_they_may_be_and_whether_they_must_be)
{
    static const char *const statuses[] = { "OPEN", "DONE", NULL };

    manual_options(out, (const arg_spec[]){
                            { "DOMAIN", .help = "which", .positional = true, .required = true },
                            { "json", ARG_FLAG, .help = "as JSON" },
                            { "status", ARG_CHOICE, 0, "STATUS", "in this", .choices = statuses },
                            { "n", ARG_INT, 0, "N", "so many [50]", .min = 1, .max = 1000 },
                            { "skip", ARG_LONG, 0, "N", "leave out", .max = INT64_MAX },
                            { "timeout", ARG_DURATION, 0, "TIME", "for it", .max = 86400000 },
                            { "reason", ARG_TEXT, 0, "TEXT", "why", .required = true },
                            { 0 } });

    expect_page(".TP\n\\fBDOMAIN\\fR\nwhich\n"
                ".TP\n\\fB\\-\\-json\\fR\nas JSON\n"
                ".TP\n\\fB\\-\\-status\\fR \\fISTATUS\\fR\nin this; one of OPEN, DONE\n"
                ".TP\n\\fB\\-\\-n\\fR \\fIN\\fR\nso many [50]; 1 to 1000\n"
                ".TP\n\\fB\\-\\-skip\\fR \\fIN\\fR\nleave out\n"
                ".TP\n\\fB\\-\\-timeout\\fR \\fITIME\\fR\nfor it; 0s to 1d\n"
                ".TP\n\\fB\\-\\-reason\\fR \\fITEXT\\fR\nwhy; must be given\n");
}

Test(manual, exit_codes_are_items)
{
    manual_exits(out, (const arg_exit[]){ { "0", "done" }, { "2 and 3", "as above" }, { 0 } });

    expect_page(".TP\n\\fB0\\fR\ndone\n.TP\n\\fB2 and 3\\fR\nas above\n");
}
