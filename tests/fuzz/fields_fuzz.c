/* Field tables: a struct with every type of field, read from JSON. Refused, or the same again when written and
 * read; a diff patched onto the struct before gives the struct after.
 *
 *     the struct before, one line of JSON
 *     the struct after */
#include "fuzz.h"

#include <commandbus/fields.h>
#include <json-c/json.h>

#include "json.h"

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
} everything;

static const char *const colours[] = { "RED", "GREEN", "BLUE", NULL };

CB_FIELDS(fields, everything, CB_FIELD(everything, yes, CB_BOOL),
          CB_FIELD(everything, count, CB_INT), CB_FIELD(everything, small, CB_INT32),
          CB_FIELD(everything, ratio, CB_DOUBLE), CB_FIELD(everything, text, CB_TEXT),
          CB_FIELD(everything, id, CB_UUID), CB_FIELD(everything, at, CB_TIME),
          CB_FIELD_ENUM(everything, colour, colours), CB_FIELD(everything, any, CB_JSON),
          CB_FIELD(everything, price, CB_MONEY), CB_FIELD(everything, rate, CB_DECIMAL));

/* The caller owns it; NULL for what is no JSON object, or refused. */
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
    cb_fields_free(&fields, copy);
}

static json_object *parse(const char *text)
{
    /* As it comes from the database, which takes nothing else. */
    return json_check(text, JSON_OBJECT, "it", NULL) ? json_tokener_parse(text) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
