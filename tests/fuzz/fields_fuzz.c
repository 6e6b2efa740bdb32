/* Field tables: a struct with every type of field, nested ones too, read from JSON. Refused, or the
 * same again when written and read; a diff patched onto the struct before gives the struct after.
 *
 *     the struct before, one line of JSON
 *     the struct after */
#include "fuzz.h"

#include <commandbus/fields.h>
#include <json-c/json.h>

#include "json_check.h"

typedef struct {
    cb_date on;
    char *word;
    json_object *any;
    CB_LIST_OF(int) colours;
} part;

typedef struct {
    part inner;
    CB_LIST_OF(cb_date) days;
} middle;

typedef struct {
    bool yes;
    int64_t count;
    int small;
    double ratio;
    char *text;
    cb_uuid id;
    int64_t at;
    int colour;
    json_object *any;
    cb_money price;
    cb_decimal rate;
    cb_date day;
    part one;
    middle two;
    CB_LIST_OF(char *) words;
    CB_LIST_OF(part) parts;
    CB_LIST_OF(cb_money) prices;
} everything;

static const char *const colours[] = { "RED", "GREEN", "BLUE", NULL };

CB_FIELDS(part_fields, part, CB_FIELD(part, on, CB_DATE), CB_FIELD(part, word, CB_TEXT),
          CB_FIELD(part, any, CB_JSON), CB_FIELD_LIST_ENUM(part, colours, colours, 3));
CB_FIELDS(middle_fields, middle, CB_FIELD_STRUCT(middle, inner, &part_fields),
          CB_FIELD_LIST(middle, days, CB_DATE, 3));
CB_FIELDS(fields, everything, CB_FIELD(everything, yes, CB_BOOL),
          CB_FIELD(everything, count, CB_INT), CB_FIELD(everything, small, CB_INT32),
          CB_FIELD(everything, ratio, CB_DOUBLE), CB_FIELD(everything, text, CB_TEXT),
          CB_FIELD(everything, id, CB_UUID), CB_FIELD(everything, at, CB_TIME),
          CB_FIELD_ENUM(everything, colour, colours), CB_FIELD(everything, any, CB_JSON),
          CB_FIELD(everything, price, CB_MONEY), CB_FIELD(everything, rate, CB_DECIMAL),
          CB_FIELD(everything, day, CB_DATE), CB_FIELD_STRUCT(everything, one, &part_fields),
          CB_FIELD_STRUCT(everything, two, &middle_fields),
          CB_FIELD_LIST(everything, words, CB_TEXT, 4),
          CB_FIELD_LIST_OF(everything, parts, &part_fields, 3),
          CB_FIELD_LIST(everything, prices, CB_MONEY, 2));

/* The caller owns it; NULL if it is not a JSON object, or is refused. */
static everything *read_record(json_object *from)
{
    everything *record = cb_fields_new(&fields);
    cb_error e = { 0 };

    FUZZ_CHECK(record, "no memory");
    if (cb_fields_read(&fields, record, from, NULL, &e))
        return record;
    fuzz_refused(&e, CB_INVALID_DATA);
    cb_fields_free(&fields, record);
    return NULL;
}

static void check_same(const everything *a, const everything *b, const char *when)
{
    json_object *changes = NULL;

    FUZZ_CHECK(cb_fields_diff(&fields, a, b, &changes), "%s: not comparable", when);
    FUZZ_CHECK(!changes, "%s: %s", when, json_object_to_json_string(changes));
}

/* By its text, as it goes through the database. */
static void check_round_trip(const everything *record)
{
    json_object *written = cb_fields_write(&fields, record);
    cb_error e = { 0 };

    FUZZ_CHECK(written && cb_fields_valid(&fields, record, &e), "read but not valid: %s",
               e.message);
    const char *text = json_object_to_json_string_ext(written, JSON_C_TO_STRING_PLAIN);
    FUZZ_CHECK(json_check_numbers(text, JSON_OBJECT, JSON_NUMBERS_HELD, "it", &e), "%s: %s",
               e.message, text);
    json_object *parsed = json_tokener_parse(text);
    everything *again = read_record(parsed);
    FUZZ_CHECK(again, "not read again: %s", text);
    check_same(record, again, "written and read");
    json_object_put(written);
    json_object_put(parsed);
    cb_fields_free(&fields, again);
}

/* Adding, removing and copying items keeps a struct valid, and the lists within their bounds. */
static void check_lists(everything *record)
{
    cb_error e = { 0 };
    size_t added = 0;

    while (cb_list_add(&fields, record, &record->parts))
        added++;
    FUZZ_CHECK(record->parts.n == 3 && added <= 3, "%zu parts", record->parts.n);
    cb_list_remove(&fields, record, &record->parts, 1);
    FUZZ_CHECK(record->parts.n == 2, "%zu parts", record->parts.n);
    FUZZ_CHECK(
        cb_list_copy(&part_fields, &record->one, &record->one.colours, &record->two.inner.colours),
        "no memory");
    cb_list_clear(&fields, record, &record->words);
    FUZZ_CHECK(cb_fields_valid(&fields, record, &e), "%s", e.message);
}

static void check_patch(const everything *before, const everything *after, json_object *whole)
{
    everything *copy = cb_fields_new(&fields);
    json_object *changes = NULL;
    cb_error e = { 0 };

    FUZZ_CHECK(copy && cb_fields_copy(&fields, copy, before), "no memory");
    check_same(before, copy, "copied");
    FUZZ_CHECK(cb_fields_diff(&fields, before, after, &changes), "no difference");
    FUZZ_CHECK(cb_fields_patch(&fields, copy, changes, &e), "%s", e.message);
    check_same(after, copy, "patched");
    FUZZ_CHECK(cb_fields_patch(&fields, copy, whole, &e), "%s", e.message);
    json_object_put(changes);
    check_lists(copy);
    cb_fields_free(&fields, copy);
}

static json_object *parse(const char *text)
{
    /* As it comes from the database, which takes nothing else. */
    return json_check(text, JSON_OBJECT, "it", NULL) ? json_tokener_parse(text) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool checked;
    cb_error e = { 0 };

    if (!checked)
        FUZZ_CHECK((checked = cb_fields_check(&fields, &e)), "%s", e.message);
    FUZZ_SPLIT(in, data, size);
    json_object *first = parse(fuzz_line(&in, 0)), *second = parse(fuzz_line(&in, 1));
    everything *before = first ? read_record(first) : NULL;
    everything *after = second ? read_record(second) : NULL;

    if (before)
        check_round_trip(before);
    if (after)
        check_round_trip(after);
    if (before && after)
        check_patch(before, after, second);
    cb_fields_free(&fields, before);
    cb_fields_free(&fields, after);
    json_object_put(first);
    json_object_put(second);
    return 0;
}
