/* JSON as text in the command line tool: written, indented, cut up and unescaped without changing
 * it. */
#include "fuzz.h"

#include <json-c/json.h>

#include "json_text.h"
#include "utf8.h"

/* What the function writes; the caller frees it. */
static char *written(void (*write)(FILE *out, const char *text), const char *text)
{
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);

    FUZZ_CHECK(out, "no memory");
    write(out, text);
    fclose(out);
    return result;
}

static void write_pretty(FILE *out, const char *json)
{
    json_write_pretty(out, json, 2);
}

static void check_string(const char *text)
{
    char *quoted = written(json_write_string, text);

    FUZZ_CHECK(!utf8_is_valid(text) || json_is_value(quoted), "%s", quoted);
    FUZZ_CHECK(json_unescape(quoted) && strcmp(quoted, text) == 0, "%s became %s", text, quoted);
    free(quoted);
}

static void check_pretty(const char *json)
{
    char *pretty = written(write_pretty, json);
    json_object *before = json_tokener_parse(json), *after = json_tokener_parse(pretty);

    FUZZ_CHECK(json_object_equal(before, after), "%s became %s", json, pretty);
    json_object_put(before);
    json_object_put(after);
    free(pretty);
}

/* Every member is found, with its key and a value that is what json-c has (the last one, if a key
 * is there twice). */
static void check_members(const char *json, bool strict)
{
    json_object *whole = json_tokener_parse(json), *rebuilt = json_object_new_object();
    char *copy = strdup(json), *at = copy;
    json_member member;

    FUZZ_CHECK(whole && rebuilt && copy, "no memory");
    while (json_next_member(&at, &member)) {
        FUZZ_CHECK(member.value_length == strlen(member.value), "%s", member.value);
        json_object_object_add(rebuilt, member.key, json_tokener_parse(member.value));
    }
    if (strict)
        FUZZ_CHECK(json_object_equal(whole, rebuilt), "%s became %s", json,
                   json_object_to_json_string(rebuilt));
    json_object_put(whole);
    json_object_put(rebuilt);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_TEXT(text, data, size);
    char *raw = strdup(text);
    cb_error e = { 0 };

    FUZZ_CHECK(raw, "no memory");
    (void)json_unescape(raw);
    free(raw);
    check_string(text);
    free(written(write_pretty, text)); /* of anything: only not to crash */
    if (!json_check_object(text, strlen(text), &e)) {
        fuzz_refused(&e, CB_INVALID_DATA);
        return 0;
    }
    if (json_is_value(text)) /* json-c takes a little more, such as 00 and NaN */
        check_pretty(text);
    check_members(text, json_is_value(text));
    return 0;
}
