/* The word that was meant. */
#include "nearest.h"

#include <criterion/criterion.h>
#include <string.h>

/* The nearest of a few known words, "" for none. */
static const char *nearest_to(const char *word)
{
    static const char *const known[] = { "send", "process", "batch", "concurrent-messages",
                                         "port" };
    nearest_word n = { .word = word, .length = strlen(word) };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        nearest_offer(&n, known[i]);
    return n.best ? n.best : "";
}

Test(nearest, forgives_a_letter_changed_added_dropped_or_swapped)
{
    cr_expect_str_eq(nearest_to("sent"), "send");
    cr_expect_str_eq(nearest_to("sendd"), "send");
    cr_expect_str_eq(nearest_to("sed"), "send");
    cr_expect_str_eq(nearest_to("sned"), "send");
    cr_expect_str_eq(nearest_to("send"), "send");
}

Test(nearest, forgives_more_in_longer_words)
{
    cr_expect_str_eq(nearest_to("concurent_mesages"), "concurrent-messages");
    cr_expect_str_eq(nearest_to("pxxx"), "");
}

Test(nearest, takes_a_beginning_for_the_whole)
{
    cr_expect_str_eq(nearest_to("conc"), "concurrent-messages");
    cr_expect_str_eq(nearest_to("pro"), "process");
    cr_expect_str_eq(nearest_to("co"), "", "too short to tell");
}

Test(nearest, knows_nothing_near_other_words)
{
    char endless[200] = "";

    memset(endless, 'a', sizeof endless - 1);
    cr_expect_str_eq(nearest_to(""), "");
    cr_expect_str_eq(nearest_to("zzzz"), "");
    cr_expect_str_eq(nearest_to(endless), "");
}

Test(nearest, keeps_the_first_of_two_that_are_as_near)
{
    nearest_word n = { .word = "bat", .length = 3 };

    cr_expect(nearest_offer(&n, "cat"));
    cr_expect(!nearest_offer(&n, "hat"));
    cr_expect_str_eq(n.best, "cat");
    cr_expect(nearest_offer(&n, "bat"));
    cr_expect_str_eq(n.best, "bat");
}

Test(nearest, reads_no_further_than_the_length)
{
    nearest_word n = { .word = "prot=9464", .length = 4 };

    cr_expect(nearest_offer(&n, "port"));
}
