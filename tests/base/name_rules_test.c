/* What names may look like. */
#include "name_rules.h"

#include <criterion/criterion.h>
#include <string.h>

#define LETTERS_36 "abcdefghijabcdefghijabcdefghijabcdef"

static void expect_rule(const char *(*rule)(const char *), const char *const good[],
                        const char *const bad[])
{
    for (; *good; good++)
        cr_expect_null(rule(*good), "%s: %s", *good, rule(*good));
    for (; *bad; bad++)
        cr_expect(rule(*bad) && strncmp(rule(*bad), "use ", 4) == 0, "'%s'", *bad);
    cr_expect_not_null(rule(NULL));
}

Test(name_rules, of_a_domain)
{
    static const char *const good[] = { "f", "fx", "fx_2", "a_b_c", LETTERS_36 "g", NULL };
    static const char *const bad[] = { "",     "FX",  "1fx",  "_fx", "f-x",           "f x",
                                       "a__b", "fx_", "fx\n", "fx}", LETTERS_36 "gh", "\xC3\xA9",
                                       NULL };

    expect_rule(name_rule_domain, good, bad);
}

Test(name_rules, of_a_queue)
{
    static const char *const good[] = { "fx__commands", "q", "q_", LETTERS_36 "12345678901", NULL };
    static const char *const bad[] = { "", "Fx", "1q", "f-x", LETTERS_36 "123456789012", NULL };

    expect_rule(name_rule_queue, good, bad);
}

Test(name_rules, of_a_type)
{
    static const char *const good[] = { "B", "BookFx", "book.fx-2_x", LETTERS_36 LETTERS_36, NULL };
    static const char *const bad[] = { "",    "1st",      "a b",
                                       ".a",  "a/b",      LETTERS_36 LETTERS_36 LETTERS_36,
                                       "b\n", "\xC3\xA9", NULL };

    expect_rule(name_rule_type, good, bad);
}

Test(name_rules, of_a_handler_set)
{
    static const char *const good[] = { "fx", "a__b", "fx_", NULL };
    static const char *const bad[] = { "", "../../evil", "my-set", "Fx", "set.so", "a/b", NULL };

    expect_rule(name_rule_set, good, bad);
}

/* A domain's queues have names that PGMQ takes. */
Test(name_rules, the_longest_domain_has_the_longest_queue)
{
    cr_expect_eq(NAME_DOMAIN_LIMIT + strlen("__commands"), NAME_QUEUE_LIMIT);
    cr_expect_null(name_rule_queue(LETTERS_36 "g__commands"));
}
