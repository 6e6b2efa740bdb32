/* Values of configuration keys: refused, or what is printed of them gives the same value. And
 * passwords that are redacted.
 *
 *     the path of a key, or another line for config_redact
 *     its value */
#include "fuzz.h"

#include "config_store.h"

/* A value as --set says it: a text as it is, lists without their quotes. The caller frees it. */
static char *spoken(json_object *value)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    FUZZ_CHECK(out, "no memory");
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            fprintf(out, "%s%s", i ? ", " : "",
                    json_object_get_string(json_object_array_get_idx(value, i)));
    } else if (value) {
        fputs(json_object_get_string(value), out);
    }
    fclose(out);
    return text;
}

static size_t size_of(const config_key *key)
{
    size_t size = key_section(key)->item_size;

    return size ? size : sizeof(config);
}

static void check_value(const config_key *key, const char *text)
{
    void *item = calloc(1, size_of(key)), *again = calloc(1, size_of(key));
    cb_error e = { 0 };

    FUZZ_CHECK(item && again, "no memory");
    if (!key_parse(key, item, text, &e)) {
        fuzz_refused(&e, CB_MISUSE);
        FUZZ_CHECK(!strchr(e.message, '\n'), "more than a line: %s", e.message);
    } else {
        json_object *value = key_json(key, item);
        char *words = spoken(value);
        FUZZ_CHECK(key_parse(key, again, words, &e), "%s: '%s' became '%s': %s", key->path, text,
                   words, e.message);
        json_object *same = key_json(key, again);
        FUZZ_CHECK(json_object_equal(value, same), "%s: '%s' became '%s'", key->path, text, words);
        json_object_put(value);
        json_object_put(same);
        free(words);
    }
    key_clear(key, item);
    key_clear(key, again);
    free(item);
    free(again);
}

static void check_size(const char *text)
{
    char out[SIZE_SIZE];
    int64_t bytes = -1, same = -1;

    if (size_parse(text, &bytes))
        FUZZ_CHECK(bytes >= 0 && size_parse(size_write(bytes, out, sizeof out), &same) &&
                       same == bytes,
                   "%s became %s", text, out);
}

/* Whatever the password is, nothing of it is seen. */
static void check_redact(const char *password)
{
    char *url = NULL, *conninfo = NULL, *any = config_redact(password);

    FUZZ_CHECK(any &&
                   asprintf(&url, "postgresql://me:%s@db.example/x?sslmode=require", password) > 0,
               "no memory");
    char *shown = config_redact(url);
    FUZZ_CHECK(strcmp(shown, "postgresql://me:***@db.example/x?sslmode=require") == 0, "%s", shown);
    free(shown);
    if (*password && !strpbrk(password, "'\\")) {
        FUZZ_CHECK(asprintf(&conninfo, "host=db password='%s' dbname=x", password) > 0,
                   "no memory");
        shown = config_redact(conninfo);
        FUZZ_CHECK(strcmp(shown, "host=db password=*** dbname=x") == 0, "%s", shown);
        free(shown);
    }
    free(any);
    free(url);
    free(conninfo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_SPLIT(in, data, size);
    const char *path = fuzz_line(&in, 0), *value = fuzz_line(&in, 1);

    for (size_t i = 0; i < n_config_keys; i++) {
        if (strcmp(config_keys[i].path, path) == 0)
            check_value(&config_keys[i], value);
    }
    check_size(value);
    check_redact(path);
    return 0;
}
