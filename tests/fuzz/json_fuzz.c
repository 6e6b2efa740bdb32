/* JSON text as the bus checks it: what it takes json-c reads whole, and as the same. */
#include "fuzz.h"

#include <json-c/json.h>
#include <math.h>

#include "json_check.h"

/* Everything in it has the value that its text says; false for a number that C cannot hold. */
static bool is_finite(json_object *value)
{
    bool finite = true;

    switch (json_object_get_type(value)) {
    case json_type_double:
        return isfinite(json_object_get_double(value));
    case json_type_array:
        for (size_t i = 0; i < json_object_array_length(value); i++)
            finite = finite && is_finite(json_object_array_get_idx(value, i));
        return finite;
    case json_type_object: {
        json_object_object_foreach(value, key, member)
        {
            FUZZ_CHECK(key, "a member without key");
            finite = finite && is_finite(member);
        }
        return finite;
    }
    default:
        return true;
    }
}

/* Members that json-c has: of a key that is there twice one. */
static size_t members_in(json_object *value)
{
    size_t n = 0;

    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            n += members_in(json_object_array_get_idx(value, i));
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, key, member)
        {
            (void)key;
            n += 1 + members_in(member);
        }
    }
    return n;
}

/* Members that the text has: its colons, but for those in strings. */
static size_t colons_in(const char *text)
{
    size_t n = 0;
    bool in_string = false;

    for (; *text; text++) {
        if (*text == '"')
            in_string = !in_string;
        else if (in_string && *text == '\\')
            text++;
        else if (!in_string)
            n += *text == ':';
    }
    return n;
}

static json_object *parse(const char *text, enum json_tokener_error *problem)
{
    json_tokener *tokener = json_tokener_new_ex(JSON_MAX_DEPTH + 1);

    FUZZ_CHECK(tokener, "no memory");
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    json_object *value = json_tokener_parse_ex(tokener, text, (int)strlen(text) + 1);
    *problem = json_tokener_get_error(tokener);
    json_tokener_free(tokener);
    return value;
}

/* Written and read again it is the same, and still JSON to us. */
static void check_again(json_object *value)
{
    enum json_tokener_error problem;
    const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
    cb_error e = { 0 };

    FUZZ_CHECK(json_check_numbers(text, JSON_ANY, JSON_NUMBERS_HELD, "it", &e), "%s", e.message);
    json_object *again = parse(text, &problem);
    FUZZ_CHECK(problem == json_tokener_success && json_object_equal(value, again), "%s", text);
    json_object_put(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_TEXT(text, data, size);
    enum json_tokener_error problem;
    cb_error e = { 0 };

    if (!json_check(text, JSON_ANY, "it", &e)) {
        fuzz_refused(&e, CB_INVALID_DATA);
        FUZZ_CHECK(!json_check_numbers(text, JSON_ANY, JSON_NUMBERS_HELD, "it", &e), "stricter");
        return 0;
    }
    json_object *value = parse(text, &problem);
    FUZZ_CHECK(problem == json_tokener_success, "%s", json_tokener_error_desc(problem));
    FUZZ_CHECK(members_in(value) == colons_in(text), "a key is there twice");
    FUZZ_CHECK(json_check(text, JSON_OBJECT, "it", NULL) ==
                   json_object_is_type(value, json_type_object),
               "object or not");
    bool finite = json_check_numbers(text, JSON_ANY, JSON_NUMBERS_FINITE, "it", NULL);
    bool held = json_check_numbers(text, JSON_ANY, JSON_NUMBERS_HELD, "it", NULL);
    FUZZ_CHECK(!held || finite, "held, but not finite");
    FUZZ_CHECK(!finite || is_finite(value), "finite, but json-c has an infinity");
    if (held)
        check_again(value);
    json_object_put(value);
    return 0;
}
