/* A table that is not sound is refused before anybody trusts it. */
#include "fields_support.h"

typedef struct {
    int64_t number;
    char *text;
    int small;
} thing;

Test(fields_check, a_table_of_every_type_is_sound)
{
    cb_error e;

    expect_ok(cb_fields_check(&trade_fields, &e), e);
}

Test(fields_check, what_is_wrong_is_said)
{
    static const char *const none[] = { NULL }, *const twice[] = { "A", "A", NULL };

    expect_unsound("'number' of thing has 8 bytes where its type has 4",
                   CB_FIELD(thing, number, CB_INT32));
    expect_unsound("'small'", CB_FIELD(thing, small, CB_INT));
    expect_unsound("'small'", CB_FIELD(thing, small, CB_MONEY));
    expect_unsound("field 2 of thing has no name", CB_FIELD(thing, number, CB_INT),
                   CB_FIELD_AS(thing, small, CB_INT32, ""));
    expect_unsound("twice", CB_FIELD(thing, number, CB_INT),
                   CB_FIELD_AS(thing, small, CB_INT32, "number"));
    expect_unsound("one member", CB_FIELD(thing, text, CB_TEXT),
                   CB_FIELD_AS(thing, text, CB_TEXT, "again"));
    expect_unsound("needs distinct names", CB_FIELD(thing, small, CB_ENUM));
    expect_unsound("needs distinct names", CB_FIELD_ENUM(thing, small, none));
    expect_unsound("needs distinct names", CB_FIELD_ENUM(thing, small, twice));
    expect_unsound("type that does not exist", CB_FIELD(thing, number, (cb_field_type)99));
    expect_unsound(
        "outside",
        { .name = "far", .type = CB_INT, .offset = sizeof(thing), .size = sizeof(int64_t) });
}

Test(fields_check, a_table_must_be_there)
{
    const cb_fields nothing = { 0 }, lost = { "thing", sizeof(thing), NULL, 1 };
    cb_error e;

    expect_error(CB_MISUSE, cb_fields_check(NULL, &e), e);
    expect_error(CB_MISUSE, cb_fields_check(&nothing, &e), e);
    expect_error(CB_MISUSE, cb_fields_check(&lost, &e), e);
}
