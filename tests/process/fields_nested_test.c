/* Dates, nested structs and lists as fields: paths in refusals, small differences, clear
 * ownership, bounds. STP.19. */
#include "fields_support.h"
#include "trip.h"

/* A trade read from JSON; the caller owns it. */
static trade *trade_of(const char *text)
{
    trade *t = trade_new();
    cb_error e;

    expect_ok(read_text(t, text, &e), e);
    return t;
}

static const char full[] =
    "{\"due\":\"2026-01-31\",\"tags\":[\"a\",\"b\"],"
    "\"first\":{\"bank\":\"X\",\"valueDate\":\"2026-02-01\",\"numbers\":[1,2]},"
    "\"legs\":[{\"bank\":\"Y\",\"numbers\":[3]},{\"valueDate\":\"2026-02-02\"}],"
    "\"history\":[\"NONE\",\"DECLINED\"]}";

#define expect_diff(expected, a, b)                                                          \
    do {                                                                                     \
        OWNED(json_object) patch_ = NULL;                                                    \
        cr_assert(cb_fields_diff(&trade_fields, (a), (b), &patch_));                         \
        const char *found_ = json_object_to_json_string_ext(patch_, JSON_C_TO_STRING_PLAIN); \
        cr_assert_str_eq(found_, (expected));                                                \
    } while (0)

Test(fields_nested, a_date_is_a_day_of_the_calendar_and_nothing_else)
{
    static const char *const bad[] = {
        "2026-02-29",  "1900-02-29", "2026-00-01", "2026-13-01", "2026-01-00",
        "2026-04-31",  "0000-01-01", "2026-1-31",  "20260131",   "2026-01-31T00:00:00Z",
        " 2026-01-31", "2026-01-3",  "+026-01-31", "",           "2026-01-310"
    };
    static const char *const good[] = { "0001-01-01", "1969-12-31", "2000-02-29", "2024-02-29",
                                        "9999-12-31" };
    char text[CB_DATE_TEXT];
    cb_date date = { 1, 2, 3 };

    for (size_t i = 0; i < CB_COUNT(bad); i++)
        cr_assert_not(cb_date_parse(bad[i], &date), "%s", bad[i]);
    cr_assert_not(cb_date_parse(NULL, &date));
    cr_assert_eq(date.year, 1, "touched");
    for (size_t i = 0; i < CB_COUNT(good); i++) {
        cr_assert(cb_date_parse(good[i], &date), "%s", good[i]);
        cr_assert(cb_date_print(&date, text));
        cr_assert_str_eq(text, good[i]);
    }
    cr_assert_not(cb_date_print(&(cb_date){ 2026, 2, 30 }, text));
    cr_assert_str_eq(text, "");
}

Test(fields_nested, dates_are_ordered_by_the_calendar)
{
    const cb_date in_order[] = { { 0, 0, 0 },    { 1, 12, 31 },  { 2025, 12, 31 },
                                 { 2026, 1, 1 }, { 2026, 1, 2 }, { 2026, 2, 1 } };

    for (size_t i = 0; i < CB_COUNT(in_order); i++) {
        cr_assert_eq(cb_date_compare(&in_order[i], &in_order[i]), 0);
        for (size_t k = 0; k < i; k++) {
            cr_assert_lt(cb_date_compare(&in_order[k], &in_order[i]), 0);
            cr_assert_gt(cb_date_compare(&in_order[i], &in_order[k]), 0);
        }
    }
}

Test(fields_nested, what_is_refused_is_named_by_its_path_and_nothing_is_read)
{
    static const char *const bad[][2] = {
        { "{\"due\":\"2026-02-30\"}", "field 'due' of trade must be a date like 2026-01-31" },
        { "{\"due\":20260131}", "'due'" },
        { "{\"tags\":\"a\"}", "field 'tags' of trade must be a list or null" },
        { "{\"tags\":[\"a\",\"b\",3]}", "field 'tags[2]' of trade must be text or null" },
        { "{\"tags\":[1,2,3,4,5,6]}", "field 'tags' of trade has 6 items, but may have at most 5" },
        { "{\"history\":[\"NONE\",\"WHAT\"]}", "field 'history[1]' of trade must be one of" },
        { "{\"first\":[]}", "field 'first' of trade must be an object or null" },
        { "{\"first\":{\"bank\":1}}", "field 'first.bank' of trade must be text or null" },
        { "{\"first\":{\"numbers\":[1,true]}}", "field 'first.numbers[1]' of trade" },
        { "{\"legs\":[{},{\"numbers\":[1,2,\"3\"]}]}", "field 'legs[1].numbers[2]' of trade" },
        { "{\"legs\":[{},{\"numbers\":[1,2,3,4,5]}]}",
          "field 'legs[1].numbers' of trade has 5 items, but may have at most 4" },
        { "{\"legs\":[5]}", "field 'legs[0]' of trade must be an object" },
    };

    for (size_t i = 0; i < CB_COUNT(bad); i++) {
        OWNED(trade) t = trade_of(full);
        OWNED(trade) same = trade_of(full);
        OWNED(json_object) patch = parsed(bad[i][0]);
        cb_error e;
        expect_error(CB_INVALID_DATA, read_text(t, bad[i][0], &e), e);
        cr_assert(strstr(e.message, bad[i][1]), "'%s' does not say '%s'", e.message, bad[i][1]);
        expect_error(CB_INVALID_DATA, cb_fields_patch(&trade_fields, t, patch, &e), e);
        cr_assert(strstr(e.message, bad[i][1]), "'%s' does not say '%s'", e.message, bad[i][1]);
        expect_same(t, same);
    }
}

Test(fields_nested, what_cannot_be_written_is_named_by_its_path)
{
    OWNED(trade) t = trade_of(full);
    cb_error e;

    t->legs.items[1].value_date.month = 13;
    expect_error(CB_INVALID_DATA, cb_fields_valid(&trade_fields, t, &e), e);
    cr_assert_str_eq(e.message, "field 'legs[1].valueDate' of trade is not a valid date of the "
                                "years 1 to 9999");
    cr_assert_null(cb_fields_write(&trade_fields, t));
    t->legs.items[1].value_date.month = 12;
    t->history.items[0] = 7;
    expect_error(CB_INVALID_DATA, cb_fields_valid(&trade_fields, t, &e), e);
    cr_assert(strstr(e.message, "'history[0]'"), "%s", e.message);
    t->history.items[0] = 0;
    t->history.n = 4;
    expect_error(CB_INVALID_DATA, cb_fields_valid(&trade_fields, t, &e), e);
    cr_assert(strstr(e.message, "'history' of trade has 4 items, but may have at most 3"), "%s",
              e.message);
    t->history.n = 2;
    expect_ok(cb_fields_valid(&trade_fields, t, &e), e);
}

/* A path longer than there is room for keeps its beginning. */
Test(fields_nested, a_long_path_is_cut_off_at_its_end)
{
#define LONG \
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
    typedef struct {
        int64_t number;
    } c_struct;
    typedef struct {
        c_struct c;
    } b_struct;
    typedef struct {
        b_struct b;
    } a_struct;
    CB_FIELDS(c_fields, c_struct, CB_FIELD_AS(c_struct, number, CB_INT, LONG));
    CB_FIELDS(b_fields, b_struct, CB_FIELD_STRUCT_AS(b_struct, c, &c_fields, LONG));
    CB_FIELDS(a_fields, a_struct, CB_FIELD_STRUCT_AS(a_struct, b, &b_fields, LONG));
    OWNED(json_object) bad = parsed("{\"" LONG "\":{\"" LONG "\":{\"" LONG "\":\"x\"}}}");
    a_struct a = { 0 };
    cb_error e;

    expect_ok(cb_fields_check(&a_fields, &e), e);
    expect_error(CB_INVALID_DATA, cb_fields_read(&a_fields, &a, bad, NULL, &e), e);
    cr_assert_eq(strncmp(e.message, "field 'abcdefghijklmnopqrstuvwxyzabc", 36), 0, "%s",
                 e.message);
    cr_assert(strstr(e.message, "of a_struct must be a 64-bit integer"), "%s", e.message);
}

/* DESIGN 4: the history holds what each step changed. */
Test(fields_nested, a_difference_has_the_changed_members_of_a_struct_and_a_changed_list_whole)
{
    OWNED(trade) a = trade_of(full);
    OWNED(trade) b = trade_of(full);

    expect_same(a, b);
    b->first.value_date.day = 2;
    expect_diff("{\"first\":{\"valueDate\":\"2026-02-02\"}}", a, b);
    cr_assert(cb_text_set(&b->tags.items[1], "c"));
    expect_diff("{\"first\":{\"valueDate\":\"2026-02-02\"},\"tags\":[\"a\",\"c\"]}", a, b);
    cr_assert(cb_fields_copy(&trade_fields, b, a));
    b->legs.items[0].numbers.items[0] = 4;
    expect_diff("{\"legs\":[{\"bank\":\"Y\",\"valueDate\":null,\"numbers\":[4]},"
                "{\"bank\":null,\"valueDate\":\"2026-02-02\",\"numbers\":[]}]}",
                a, b);
    cr_assert(cb_fields_copy(&trade_fields, b, a));
    cb_list_clear(&leg_fields, &b->first, &b->first.numbers);
    expect_diff("{\"first\":{\"numbers\":[]}}", a, b);
}

Test(fields_nested, a_patch_sets_members_of_a_struct_and_replaces_lists)
{
    OWNED(trade) t = trade_of(full);
    OWNED(json_object) patch = parsed(
        "{\"first\":{\"bank\":\"Z\",\"unknown\":1},\"legs\":[{\"bank\":\"W\"}],\"tags\":null}");
    OWNED(json_object) zeros = parsed("{\"first\":null}");
    cb_error e;

    t->first.not_in_the_table = 42;
    expect_ok(cb_fields_patch(&trade_fields, t, patch, &e), e);

    cr_assert_str_eq(t->first.bank, "Z");
    cr_assert_eq(t->first.value_date.year, 2026);
    cr_assert_eq(t->first.numbers.n, 2);
    cr_assert_eq(t->first.not_in_the_table, 42);
    cr_assert_eq(t->legs.n, 1);
    cr_assert_str_eq(t->legs.items[0].bank, "W");
    cr_assert_eq(t->tags.n, 0);
    cr_assert_null(t->tags.items);

    expect_ok(cb_fields_patch(&trade_fields, t, zeros, &e), e);
    cr_assert_null(t->first.bank);
    cr_assert_eq(t->first.value_date.year, 0);
    cr_assert_eq(t->first.not_in_the_table, 42);
}

Test(fields_nested, null_and_what_is_missing_are_zeros)
{
    OWNED(trade) t = trade_of(full);
    OWNED(trade) zeros = trade_new();
    cb_error e;

    expect_ok(
        read_text(t, "{\"due\":null,\"first\":null,\"tags\":null,\"legs\":[],\"count\":0}", &e), e);
    expect_same(t, zeros);
}

/* STP.14: unknown state fields survive */
Test(fields_nested, unknown_keys_of_a_nested_struct_are_collected_under_its_name)
{
    OWNED(trade) t = trade_new();
    OWNED(json_object) from = parsed(
        "{\"first\":{\"bank\":\"X\",\"bic\":\"Y\"},\"legs\":[{\"lost\":1}],\"new\":2,\"tags\":[]}");
    OWNED(json_object) unknown = NULL;
    cb_error e;

    expect_ok(cb_fields_read(&trade_fields, t, from, &unknown, &e), e);

    cr_assert_str_eq(json_object_to_json_string_ext(unknown, JSON_C_TO_STRING_PLAIN),
                     "{\"first\":{\"bic\":\"Y\"},\"new\":2}");
}

Test(fields_nested, a_copy_shares_nothing)
{
    OWNED(trade) a = trade_of(full);
    OWNED(trade) b = trade_new();
    OWNED(trade) same = trade_of(full);

    cr_assert(cb_fields_copy(&trade_fields, b, a));
    b->tags.items[0][0] = 'z';
    b->legs.items[0].bank[0] = 'z';
    b->legs.items[0].numbers.items[0] = 99;
    cb_list_remove(&trade_fields, b, &b->legs, 1);

    expect_same(a, same);
}

Test(fields_nested, items_are_added_to_the_end_until_the_list_is_full)
{
    OWNED(trade) t = trade_new();
    char text[] = "0";

    for (int i = 0; i < 5; i++, text[0]++) {
        char **tag = cb_list_add(&trade_fields, t, &t->tags);
        cr_assert(tag);
        cr_assert_null(*tag);
        cr_assert(cb_text_set(tag, text));
    }
    cr_assert_null(cb_list_add(&trade_fields, t, &t->tags), "it is full");
    cr_assert_null(cb_list_add(&trade_fields, t, &t->count), "it is not a list");
    cr_assert_eq(t->tags.n, 5);

    cb_list_remove(&trade_fields, t, &t->tags, 4);
    cb_list_remove(&trade_fields, t, &t->tags, 1);
    cb_list_remove(&trade_fields, t, &t->tags, 3);
    cr_assert_eq(t->tags.n, 3);
    cr_assert_str_eq(t->tags.items[0], "0");
    cr_assert_str_eq(t->tags.items[1], "2");
    cr_assert_str_eq(t->tags.items[2], "3");

    for (int i = 0; i < 3; i++)
        cb_list_remove(&trade_fields, t, &t->tags, 0);
    cr_assert_eq(t->tags.n, 0);
    cr_assert_null(t->tags.items);
}

Test(fields_nested, a_list_is_copied_from_another_struct_if_it_fits)
{
    OWNED(trade) a = trade_of("{\"first\":{\"numbers\":[1,2,3]}}");
    OWNED(trade) b = trade_of("{\"first\":{\"numbers\":[9]}}");
    int64_t five[] = { 1, 2, 3, 4, 5 };
    CB_LIST_OF(int64_t) large = { five, 5 };

    cr_assert(cb_list_copy(&leg_fields, &b->first, &b->first.numbers, &a->first.numbers));
    expect_same(a, b);
    cr_assert_not(cb_list_copy(&leg_fields, &b->first, &b->first.numbers, &large));
    expect_same(a, b);
}

/* json-c reads 32 levels: whatever is nested, a state comes back. */
Test(fields_nested, json_in_a_nested_struct_may_be_less_deep)
{
    typedef struct {
        json_object *any;
    } inner;
    typedef struct {
        CB_LIST_OF(inner) items;
    } outer;
    CB_FIELDS(inner_fields, inner, CB_FIELD(inner, any, CB_JSON));
    CB_FIELDS(outer_fields, outer, CB_FIELD_LIST_OF(outer, items, &inner_fields, 2));
    outer *o = cb_fields_new(&outer_fields);
    inner *i = cb_list_add(&outer_fields, o, &o->items);
    cb_error e;

    cr_assert(i);
    for (int depth = 0; depth < 22; depth++) {
        json_object *array = json_object_new_array();
        json_object_array_add(array, i->any);
        i->any = array;
    }
    expect_ok(cb_fields_valid(&outer_fields, o, &e), e);
    json_object *array = json_object_new_array();
    json_object_array_add(array, i->any);
    json_object_array_add(array, json_object_new_int(1));
    i->any = json_object_new_array();
    json_object_array_add(i->any, array);
    expect_error(CB_INVALID_DATA, cb_fields_valid(&outer_fields, o, &e), e);
    cr_assert(strstr(e.message, "'items[0].any'"), "%s", e.message);
    cb_fields_free(&outer_fields, o);
}

/* What StatementReport was before there were dates and lists: processes of then go on. */
Test(fields_nested, what_was_stored_as_text_and_json_is_read_as_a_date_and_a_list)
{
    typedef struct {
        char *from;
        json_object *accounts;
    } before;
    typedef struct {
        cb_date from;
        CB_LIST_OF(char *) accounts;
    } now;
    CB_FIELDS(before_fields, before, CB_FIELD(before, from, CB_TEXT),
              CB_FIELD(before, accounts, CB_JSON));
    CB_FIELDS(now_fields, now, CB_FIELD(now, from, CB_DATE),
              CB_FIELD_LIST(now, accounts, CB_TEXT, 10));
    OWNED(json_object) nothing = parsed("{\"from\":null,\"accounts\":null}");
    before *b = cb_fields_new(&before_fields);
    now *n = cb_fields_new(&now_fields);
    cb_error e;

    cr_assert(cb_text_set(&b->from, "2024-01-31"));
    b->accounts = parsed("[\"A\",\"B\"]");
    OWNED(json_object) stored = cb_fields_write(&before_fields, b);
    expect_ok(cb_fields_read(&now_fields, n, stored, NULL, &e), e);
    OWNED(json_object) again = cb_fields_write(&now_fields, n);
    cr_assert(json_object_equal(stored, again), "%s", json_object_to_json_string(again));

    expect_ok(cb_fields_patch(&now_fields, n, nothing, &e), e);
    cr_assert_eq(n->accounts.n, 0);
    expect_ok(cb_fields_patch(&now_fields, n, stored, &e), e);
    cr_assert_str_eq(n->accounts.items[1], "B");
    cb_fields_free(&before_fields, b);
    cb_fields_free(&now_fields, n);
}

Test(fields_nested, a_table_of_another_file_is_a_table) /* trip.c has CB_FIELDS_DEFINE */
{
    trip *t = cb_fields_new(&trip_fields);
    cb_error e;

    expect_ok(cb_fields_check(&trip_fields, &e), e);
    cr_assert_str_eq(trip_fields.name, "trip");
    cb_fields_free(&trip_fields, t);
}

/* ---- tables that are not sound ---- */

typedef struct {
    CB_LIST_OF(int) numbers;
    leg one;
    int64_t number;
} thing;

Test(fields_nested, what_is_wrong_with_a_list_or_a_struct_is_said)
{
    const cb_field bad_list[] = { CB_FIELD(leg, bank, CB_INT32) };
    const cb_fields bad = { "leg", sizeof(leg), bad_list, 1 };

    expect_unsound("'numbers[]' of thing has 4 bytes where its type has 8",
                   CB_FIELD_LIST(thing, numbers, CB_INT, 3));
    expect_unsound("'numbers[]' of thing needs distinct names",
                   CB_FIELD_LIST(thing, numbers, CB_ENUM, 3));
    expect_unsound("'numbers[]' of thing needs a table",
                   CB_FIELD_LIST(thing, numbers, CB_STRUCT, 3));
    expect_unsound("'numbers[]' of thing has 4 bytes",
                   CB_FIELD_LIST_OF(thing, numbers, &leg_fields, 3));
    expect_unsound("list of lists", CB_FIELD_LIST(thing, numbers, CB_LIST, 3));
    expect_unsound("may have no items", CB_FIELD_LIST(thing, numbers, CB_INT32, 0));
    expect_unsound("'number' of thing has 8 bytes", CB_FIELD(thing, number, CB_LIST));
    expect_unsound("'number' of thing has 8 bytes", CB_FIELD(thing, number, CB_DATE));
    expect_unsound("'one' of thing needs a table of its own", CB_FIELD(thing, one, CB_STRUCT));
    expect_unsound("'bank' of leg has 8 bytes", CB_FIELD_STRUCT(thing, one, &bad));
    expect_unsound("exceed 4194304 bytes when its lists are full",
                   CB_FIELD_LIST(thing, numbers, CB_INT32, 1048576));
    expect_unsound("exceed 4194304 bytes", CB_FIELD_LIST(thing, numbers, CB_INT32, SIZE_MAX / 2));
}

typedef struct tree {
    CB_LIST_OF(struct tree) branches;
} tree;

CB_FIELDS_DECLARE(tree_fields);
CB_FIELDS_DEFINE(tree_fields, tree, CB_FIELD_LIST_OF(tree, branches, &tree_fields, 2));

Test(fields_nested, a_table_in_itself_is_refused)
{
    cb_error e;

    expect_error(CB_MISUSE, cb_fields_check(&tree_fields, &e), e);
    cr_assert_str_eq(e.message, "tree is nested more than 8 tables deep");
}
