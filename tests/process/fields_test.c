/* Structs by their tables: what is written is what is read, and only what changed is a
 * difference. */
#include "fields_support.h"

/* As JSON text, which the caller frees. */
static char *written(const trade *t)
{
    OWNED(json_object) object = cb_fields_write(&trade_fields, t);

    cr_assert(object);
    return strdup(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
                                                             JSON_C_TO_STRING_NOSLASHESCAPE));
}

#define expect_written(expected, t)           \
    do {                                      \
        char *found_ = written(t);            \
        cr_assert_str_eq(found_, (expected)); \
        free(found_);                         \
    } while (0)

static void expect_fields_refused(const char *text, const char *message)
{
    OWNED(trade) t = trade_new();
    cb_error e;

    t->count = 7;
    expect_error(CB_INVALID_DATA, read_text(t, text, &e), e);
    cr_assert(strstr(e.message, message), "'%s' does not say '%s'", e.message, message);
    cr_assert_eq(t->count, 7, "something was read");
}

static void fill_nested(trade *t)
{
    char **tag = cb_list_add(&trade_fields, t, &t->tags);
    leg *l = cb_list_add(&trade_fields, t, &t->legs);
    int *status = cb_list_add(&trade_fields, t, &t->history);
    int64_t *number = cb_list_add(&leg_fields, &t->first, &t->first.numbers);

    cr_assert(tag && l && status && number);
    cr_assert(cb_text_set(tag, "x") && cb_text_set(&l->bank, "B"));
    cr_assert(cb_list_add(&trade_fields, t, &t->tags)); /* a text that is NULL */
    *status = RISK_APPROVED;
    *number = 7;
    cr_assert(cb_text_set(&t->first.bank, "A"));
    t->first.value_date = (cb_date){ 1, 1, 1 };
}

static void fill_trade(trade *t)
{
    cr_assert(cb_text_set(&t->account, "DE89 \"ä\""));
    t->approved = true;
    t->retries = -3;
    t->count = INT64_MIN;
    t->score = 0.1;
    cr_assert(cb_uuid_parse("01890000-0000-7000-8000-0000000000AB", &t->id));
    t->booked_at = 1767225599123;
    t->risk = RISK_DECLINED;
    t->extra = parsed("{\"a\":[1,null]}");
    t->amount = (cb_money){ 1230, "EUR" };
    t->rate = (cb_decimal){ 10837, 4 };
    t->due = (cb_date){ 2028, 2, 29 };
    fill_nested(t);
}

Test(fields, a_struct_of_zeros_is_written_with_every_field)
{
    OWNED(trade) t = trade_new();

    expect_written("{\"debitAccount\":null,\"approved\":false,\"retries\":0,\"count\":0,"
                   "\"score\":0.0,\"id\":null,\"bookedAt\":null,\"risk\":\"NONE\",\"extra\":null,"
                   "\"amount\":null,\"rate\":\"0\",\"due\":null,"
                   "\"first\":{\"bank\":null,\"valueDate\":null,\"numbers\":[]},"
                   "\"tags\":[],\"legs\":[],\"history\":[]}",
                   t);
}

Test(fields, every_type_has_its_form_on_the_wire) /* DESIGN 4: decimal strings on the wire */
{
    OWNED(trade) t = trade_new();

    fill_trade(t);

    expect_written("{\"debitAccount\":\"DE89 \\\"ä\\\"\",\"approved\":true,\"retries\":-3,"
                   "\"count\":-9223372036854775808,\"score\":0.1,"
                   "\"id\":\"01890000-0000-7000-8000-0000000000ab\","
                   "\"bookedAt\":\"2025-12-31T23:59:59.123Z\",\"risk\":\"DECLINED\","
                   "\"extra\":{\"a\":[1,null]},"
                   "\"amount\":{\"amount\":\"12.30\",\"currency\":\"EUR\"},\"rate\":\"1.0837\","
                   "\"due\":\"2028-02-29\","
                   "\"first\":{\"bank\":\"A\",\"valueDate\":\"0001-01-01\",\"numbers\":[7]},"
                   "\"tags\":[\"x\",null],"
                   "\"legs\":[{\"bank\":\"B\",\"valueDate\":null,\"numbers\":[]}],"
                   "\"history\":[\"APPROVED\"]}",
                   t);
}

Test(fields, reading_what_was_written_gives_the_same_struct)
{
    OWNED(trade) a = trade_new();
    OWNED(trade) b = trade_new();
    cb_error e;

    fill_trade(a);
    OWNED(json_object) object = cb_fields_write(&trade_fields, a);
    expect_ok(cb_fields_read(&trade_fields, b, object, NULL, &e), e);

    expect_same(a, b);
    json_object_array_add(json_object_object_get(b->extra, "a"), NULL);
    cr_assert_eq(json_object_array_length(json_object_object_get(a->extra, "a")), 2, "shared");
}

Test(fields, what_an_object_lacks_becomes_zero_and_what_the_table_lacks_stays)
{
    OWNED(trade) t = trade_new();
    OWNED(trade) zeros = trade_new();
    cb_error e;

    fill_trade(t);
    t->not_in_the_table = 42;
    expect_ok(read_text(t, "{}", &e), e);

    expect_same(t, zeros);
    cr_assert_eq(t->not_in_the_table, 42);
}

Test(fields, unknown_keys_are_collected) /* STP.14: unknown state fields survive */
{
    OWNED(trade) t = trade_new();
    OWNED(json_object) from = parsed("{\"new\":{\"x\":1},\"count\":5,\"other\":null}");
    OWNED(json_object) unknown = NULL;
    OWNED(json_object) none = NULL;
    OWNED(json_object) known = parsed("{\"count\":6}");
    cb_error e;

    expect_ok(cb_fields_read(&trade_fields, t, from, &unknown, &e), e);
    expect_ok(cb_fields_read(&trade_fields, t, known, &none, &e), e);

    cr_assert_str_eq(json_object_to_json_string_ext(unknown, JSON_C_TO_STRING_PLAIN),
                     "{\"new\":{\"x\":1},\"other\":null}");
    cr_assert_null(none);
    cr_assert_eq(t->count, 6);
}

Test(fields, the_wrong_type_is_refused_by_the_name_of_its_field_and_nothing_is_read)
{
    static const char *const bad[][2] = {
        { "{\"count\":8,\"debitAccount\":5}", "field 'debitAccount' of trade must be text" },
        { "{\"count\":8,\"debitAccount\":\"a\\u0000b\"}", "'debitAccount'" },
        { "{\"count\":8,\"approved\":1}", "'approved' of trade must be true or false" },
        { "{\"count\":8,\"approved\":null}", "'approved'" },
        { "{\"count\":8,\"retries\":2147483648}", "'retries'" },
        { "{\"count\":8,\"retries\":-2147483649}", "'retries'" },
        { "{\"count\":8,\"retries\":1.5}", "'retries'" },
        { "{\"count\":\"8\"}", "'count' of trade must be a 64-bit integer" },
        { "{\"count\":9223372036854775808}", "'count'" },
        { "{\"count\":1e16}", "'count'" },
        { "{\"count\":8,\"score\":\"1\"}", "'score'" },
        { "{\"count\":8,\"score\":100000000000000000000}", "'score'" },
        { "{\"count\":8,\"score\":-100000000000000000000}", "'score'" },
        { "{\"count\":8,\"score\":1e999}", "'score'" },
        { "{\"count\":8,\"id\":\"nobody\"}", "'id' of trade must be a UUID" },
        { "{\"count\":8,\"id\":1}", "'id'" },
        { "{\"count\":8,\"risk\":\"approved\"}", "'risk'" },
        { "{\"count\":8,\"risk\":1}", "'risk'" },
        { "{\"count\":8,\"amount\":\"12.30\"}", "'amount' of trade must be money" },
        { "{\"count\":8,\"amount\":{\"amount\":12.3,\"currency\":\"EUR\"}}", "'amount'" },
        { "{\"count\":8,\"amount\":{\"amount\":\"1.234\",\"currency\":\"EUR\"}}", "'amount'" },
        { "{\"count\":8,\"amount\":{\"amount\":\"1.23\"}}", "'amount'" },
        { "{\"count\":8,\"rate\":1.5}", "'rate' of trade must be a decimal" },
        { "[]", "trade must be a JSON object" },
    };
    cb_error e;

    for (size_t i = 0; i < CB_COUNT(bad); i++)
        expect_fields_refused(bad[i][0], bad[i][1]);
    OWNED(trade) t = trade_new();
    expect_error(CB_INVALID_DATA, cb_fields_read(&trade_fields, t, NULL, NULL, &e), e);
}

Test(fields, a_number_that_says_the_same_is_taken)
{
    OWNED(trade) t = trade_new();
    cb_error e;

    expect_ok(read_text(t, "{\"count\":5.0,\"retries\":-1e3,\"score\":3}", &e), e);

    cr_assert_eq(t->count, 5);
    cr_assert_eq(t->retries, -1000);
    cr_assert_eq(t->score, 3.0);
}

Test(fields, times_are_strict_and_may_have_a_zone)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        { "2026-01-31T12:00:00Z", 1769860800000 },
        { "2026-01-31T14:00:00.5+02:00", 1769860800500 },
        { "2026-01-31T06:30:00.123999-05:30", 1769860800123 },
        { "1969-12-31T23:59:59.999Z", -1 },
        { "2024-02-29T00:00:00Z", 1709164800000 },
        { "0001-01-01T00:00:00.000Z", -62135596800000 },
        { "9999-12-31T23:59:59.999Z", 253402300799999 },
    };
    static const char *const bad[] = {
        "2026-01-31",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00:00",
        "2026-1-31T12:00:00Z",
        "2025-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:60Z",
        "2026-01-31T12:00:0",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00z",
        "2026-01-31T12:00:00ZZ",
        "2026-01-31T12:00:00+2:00",
        "2026-01-31T12:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2026-01-31T12:00:00.1234567890Z",
        "-001-01-01T00:00:00Z",
        "",
        " 2026-01-31T12:00:00Z",
    };
    char json[80];
    cb_error e;

    for (size_t i = 0; i < CB_COUNT(good); i++) {
        OWNED(trade) t = trade_new();
        snprintf(json, sizeof json, "{\"bookedAt\":\"%s\"}", good[i].text);
        expect_ok(read_text(t, json, &e), e);
        cr_assert_eq(t->booked_at, good[i].ms, "%s is %ld", good[i].text, (long)t->booked_at);
    }
    for (size_t i = 0; i < CB_COUNT(bad); i++) {
        snprintf(json, sizeof json, "{\"bookedAt\":\"%s\"}", bad[i]);
        expect_fields_refused(json, "field 'bookedAt' of trade must be a time");
    }
}

Test(fields, a_difference_holds_what_changed_and_nothing_else)
{
    OWNED(trade) a = trade_new();
    OWNED(trade) b = trade_new();
    OWNED(json_object) patch = NULL;

    fill_trade(a);
    cr_assert(cb_fields_copy(&trade_fields, b, a));
    expect_same(a, b);
    b->approved = false;
    cr_assert(cb_text_set(&b->account, NULL));
    json_object_object_add(b->extra, "b", json_object_new_int(2)); /* in place */
    cr_assert(cb_fields_diff(&trade_fields, a, b, &patch));

    cr_assert_str_eq(
        json_object_to_json_string_ext(patch, JSON_C_TO_STRING_PLAIN),
        "{\"debitAccount\":null,\"approved\":false,\"extra\":{\"a\":[1,null],\"b\":2}}");
    json_object_object_del(b->extra, "b");
    cr_assert(json_object_object_get_ex(json_object_object_get(patch, "extra"), "b", NULL),
              "a patch is a copy");
}

/* A step that changes nothing costs no serialisation: what cannot be written is not even tried. */
Test(fields, what_did_not_change_is_neither_written_nor_copied)
{
    OWNED(trade) a = trade_new();
    OWNED(trade) b = trade_new();

    fill_trade(a);
    a->risk = 99;
    a->score = NAN;
    cr_assert(cb_fields_copy(&trade_fields, b, a));
    char *account = b->account;
    json_object *extra = b->extra;
    expect_same(a, b);
    cr_assert(cb_fields_copy(&trade_fields, b, a));

    cr_assert_eq(b->account, account);
    cr_assert_eq(b->extra, extra);
}

Test(fields, a_patch_sets_what_it_has_or_nothing)
{
    OWNED(trade) a = trade_new();
    OWNED(trade) b = trade_new();
    OWNED(json_object) patch = parsed("{\"extra\":null,\"unknown\":1,\"retries\":4}");
    OWNED(json_object) bad = parsed("{\"debitAccount\":\"new\",\"risk\":\"WHAT\"}");
    cb_error e;

    fill_trade(a);
    fill_trade(b);
    expect_ok(cb_fields_patch(&trade_fields, a, patch, &e), e);
    expect_error(CB_INVALID_DATA, cb_fields_patch(&trade_fields, a, bad, &e), e);
    expect_ok(cb_fields_patch(&trade_fields, a, NULL, &e), e);

    b->retries = 4;
    json_object_put(b->extra);
    b->extra = NULL;
    expect_same(a, b);
}

/* One member of a full struct spoilt: writing refuses, and says which. */
#define expect_invalid(field, ...)                                                 \
    do {                                                                           \
        OWNED(trade) t = trade_new();                                              \
        OWNED(trade) zeros = trade_new();                                          \
        json_object *patch_ = NULL;                                                \
        cb_error e_;                                                               \
        __VA_ARGS__;                                                               \
        expect_error(CB_INVALID_DATA, cb_fields_valid(&trade_fields, t, &e_), e_); \
        cr_assert(strstr(e_.message, "'" field "'"), "%s", e_.message);            \
        cr_assert_null(cb_fields_write(&trade_fields, t));                         \
        cr_assert_not(cb_fields_diff(&trade_fields, zeros, t, &patch_));           \
        cr_assert_null(patch_);                                                    \
    } while (0)

static json_object *nested_array(int depth)
{
    json_object *value = json_object_new_int(1);

    while (depth-- > 0) {
        json_object *array = json_object_new_array();
        json_object_array_add(array, value);
        value = array;
    }
    return value;
}

Test(fields, what_has_no_form_on_the_wire_is_not_written)
{
    expect_invalid("score", t->score = NAN);
    expect_invalid("score", t->score = -INFINITY);
    expect_invalid("debitAccount", cb_text_set(&t->account, "\xC3"));
    expect_invalid("debitAccount", cb_text_set(&t->account, "\xED\xA0\x80"));
    expect_invalid("risk", t->risk = 3);
    expect_invalid("risk", t->risk = -1);
    expect_invalid("id", strcpy(t->id.text, "x"));
    expect_invalid("id", memset(t->id.text, 'a', sizeof t->id.text));
    expect_invalid("bookedAt", t->booked_at = INT64_MAX);
    expect_invalid("bookedAt", t->booked_at = INT64_MIN);
    expect_invalid("extra", t->extra = json_object_new_double(NAN));
    expect_invalid("extra", t->extra = json_object_new_double(1e20));
    expect_invalid("extra", t->extra = json_object_new_string("\xFF"));
    expect_invalid("extra", t->extra = json_object_new_string_len("a\0b", 3));
    expect_invalid("extra", t->extra = nested_array(25));
    expect_invalid("amount", t->amount.minor = 1);
    expect_invalid("amount", memcpy(t->amount.currency, "EURO", 4));
    expect_invalid("rate", t->rate.scale = 19);

    OWNED(trade) t = trade_new();
    cb_error e;
    t->extra = nested_array(24);
    expect_ok(cb_fields_valid(&trade_fields, t, &e), e);
}

Test(fields, text_is_replaced_also_by_a_part_of_itself)
{
    char *text = NULL;

    cr_assert(cb_text_set(&text, "abc"));
    cr_assert(cb_text_set(&text, text + 1));
    cr_assert_str_eq(text, "bc");
    cr_assert(cb_text_set(&text, NULL));
    cr_assert_null(text);
}
