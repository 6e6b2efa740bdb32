/* Ids that sort, ids that repeat, and texts that are not ids. */
#include <commandbus/uuid.h>
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "uuid_bytes.h"

Test(uuid, a_new_one_is_of_version_7_and_carries_the_time)
{
    unsigned char bytes[16];
    cb_uuid id = cb_uuid_new();

    cr_assert(uuid_to_bytes(id.text, bytes));
    cr_assert_eq(bytes[6] >> 4, 7);
    cr_assert_eq(bytes[8] >> 6, 2);

    long long ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | bytes[i];
    cr_assert_leq(ms / 1000 - (long long)time(NULL), 5);
    cr_assert_geq(ms / 1000 - (long long)time(NULL), -5);
}

Test(uuid, ids_made_one_after_the_other_sort_in_that_order)
{
    cb_uuid last = cb_uuid_new();

    for (int i = 0; i < 200000; i++) {
        cb_uuid next = cb_uuid_new();
        cr_assert_lt(strcmp(last.text, next.text), 0, "%s then %s", last.text, next.text);
        last = next;
    }
}

Test(uuid, the_same_name_gives_the_same_id_always)
{
    cb_uuid dns, id;

    cr_assert(cb_uuid_parse("6ba7b810-9dad-11d1-80b4-00c04fd430c8", &dns));
    id = cb_uuid_from_name(&dns, "python.org");

    cr_assert_str_eq(id.text, "886313e1-3b8a-5372-9b90-0c9aee199e5d");
}

/* RFC 9562: version 8 is free for an application's own. */
Test(uuid, a_derived_id_is_of_version_8_and_the_same_always)
{
    cb_uuid dns, id;

    cr_assert(cb_uuid_parse("6ba7b810-9dad-11d1-80b4-00c04fd430c8", &dns));
    id = cb_uuid_derived(&dns, "python.org");

    cr_assert_str_eq(id.text, "886313e1-3b8a-8372-9b90-0c9aee199e5d");
    cr_assert(cb_uuid_is_derived(&id));
    id = cb_uuid_from_name(&dns, "python.org");
    cr_assert_not(cb_uuid_is_derived(&id));
    id = cb_uuid_new();
    cr_assert_not(cb_uuid_is_derived(&id));
}

Test(uuid, parsing_takes_either_case_and_gives_lower)
{
    cb_uuid id;

    cr_assert(cb_uuid_parse("886313E1-3B8A-5372-9B90-0C9AEE199E5D", &id));

    cr_assert_str_eq(id.text, "886313e1-3b8a-5372-9b90-0c9aee199e5d");
}

Test(uuid, an_invalid_text_is_refused)
{
    static const char *const wrong[] = {
        "",
        "886313e1",
        "886313e1-3b8a-5372-9b90-0c9aee199e5",
        "886313e1-3b8a-5372-9b90-0c9aee199e5d0",
        "886313e13b8a-5372-9b90-0c9aee199e5d-",
        "886313e13b8a53729b900c9aee199e5d",
        "g86313e1-3b8a-5372-9b90-0c9aee199e5d",
        "{86313e1-3b8a-5372-9b90-0c9aee199e5}",
        "886313e1-3b8a-5372-9b90-0c9aee199e5 ",
    };
    cb_uuid id = { "untouched" };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(cb_uuid_parse(wrong[i], &id), "'%s'", wrong[i]);
    cr_assert_not(cb_uuid_parse(NULL, &id));
    cr_assert_str_eq(id.text, "untouched");
}
