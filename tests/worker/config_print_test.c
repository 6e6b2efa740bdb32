/* --check-config: every key, its value, its origin, the limits; no password. CFG.5. */
#include "config_support.h"
#include "keys.h"

#include <json-c/json.h>

TestSuite(print, .init = folder_open, .fini = folder_close);

/* What config_print writes; the caller frees it. */
static char *printed(const config *c, bool json)
{
    FILE *file = tmpfile();
    char *text = calloc(1, 256 * 1024);

    config_print(c, json, fileno(file));
    rewind(file);
    cr_assert_gt(fread(text, 1, 256 * 1024 - 1, file), 0);
    fclose(file);
    return text;
}

/* The line of a key has this value and this origin. */
static void expect_line(const char *text, const char *key, const char *value, const char *origin)
{
    char line[1024] = "", found[3][256];

    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        if (strncmp(at, key, strlen(key)) == 0 && at[strlen(key)] == ' ')
            snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    }
    cr_assert_eq(sscanf(line, "%255s %255s %255s", found[0], found[1], found[2]), 3, "%s: %s", key,
                 line);
    cr_expect_str_eq(found[1], value, "%s", line);
    cr_expect(strstr(found[2], origin), "%s", line);
}

Test(print, shows_each_value_with_its_origin)
{
    write_file("a.cfg", "domains = { fx = {\n  concurrent-messages = 2; }; };");
    OWNED(config) c = load(.profiles = "a", .env = { "COMMANDBUS_DOMAINS_FX_FLEET_LIMIT=6" },
                           .set = { "http.port=81" });
    char *text = printed(c, false);

    expect_line(text, "domains.fx.concurrent-messages", "2", "/a.cfg:2");
    expect_line(text, "domains.fx.fleet-limit", "6", "COMMANDBUS_DOMAINS_FX_FLEET_LIMIT");
    expect_line(text, "http.port", "81", "--set");
    expect_line(text, "worker.unknown-type-grace", "10m", "default");
    expect_line(text, "limits.payload", "1MiB", "default");
    cr_expect(strstr(text, "fx: 2 calls in flight per instance × replicas; fleet-limit 6 over the "
                           "fleet\n"),
              "%s", text);
    free(text);
}

Test(print, shows_every_key)
{
    OWNED(config) c =
        load(.set = { "domains.d.enabled=true", "command-steps.s.domain=d",
                      "command-steps.s.command-type=T", "processes.Type.default-wait-timeout=1h",
                      "handlers.set.key=v" });
    char *text = printed(c, false);

    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        char path[KEY_PATH_SIZE];
        size_t n = 0;
        for (const char *from = key->path; *from; from++) {
            if (!strchr("<>", *from))
                path[n++] = *from;
        }
        path[n] = '\0';
        cr_expect(strstr(text, path), "%s", path);
    }
    free(text);
}

Test(print, says_which_domains_call_nothing)
{
    OWNED(config) c = load(.set = { "domains.fx.enabled=true", "domains.risk.enabled=false",
                                    "features.command-handlers=false" });
    char *text = printed(c, false);

    cr_expect(strstr(text, "fx: no calls, for features.command-handlers is off"), "%s", text);
    cr_expect_null(strstr(text, "risk: "), "%s", text);
    free(text);
}

Test(print, gives_json_to_tools)
{
    OWNED(config) c = load(.dir = our_configuration(), .profiles = "ratelimited-worker",
                           .set = { "domains.fx.fleet-limit=6" });
    char *text = printed(c, true);
    json_object *all = json_tokener_parse(text);

    cr_assert(all, "%s", text);
    cr_expect_str_eq(json_object_get_string(json_object_object_get(all, "profile")),
                     "ratelimited-worker");
    json_object *features = json_object_object_get(all, "features");
    cr_expect(json_object_get_boolean(json_object_object_get(features, "command-handlers")));
    cr_expect(!json_object_get_boolean(json_object_object_get(features, "reply-processing")));
    json_object *limits = json_object_object_get(all, "limits");
    cr_assert_eq(json_object_array_length(limits), 2);
    cr_expect_str_eq(json_object_to_json_string_ext(json_object_array_get_idx(limits, 0),
                                                    JSON_C_TO_STRING_PLAIN),
                     "{\"domain\":\"fx\",\"concurrent_messages\":2,\"fleet_limit\":6,"
                     "\"handlers\":[\"fx\"]}");
    json_object *key = json_object_array_get_idx(json_object_object_get(all, "keys"), 0);
    cr_expect_str_eq(json_object_get_string(json_object_object_get(key, "key")), "database.url");
    cr_expect(
        strstr(json_object_get_string(json_object_object_get(key, "origin")), "commandbus.cfg:"));
    json_object_put(all);
    free(text);
}

/* Asks the row of a key: "value|without|origin". */
static void expect_row(const char *json, const char *key, const char *expected)
{
    json_object *all = json_tokener_parse(json), *keys = json_object_object_get(all, "keys");
    char found[512] = "";

    for (size_t i = 0; i < json_object_array_length(keys); i++) {
        json_object *row = json_object_array_get_idx(keys, i);
        const char *without = json_object_get_string(json_object_object_get(row, "without"));
        if (strcmp(json_object_get_string(json_object_object_get(row, "key")), key) == 0)
            snprintf(found, sizeof found, "%s|%s|%s",
                     json_object_to_json_string(json_object_object_get(row, "value")),
                     without ? without : "",
                     json_object_get_string(json_object_object_get(row, "origin")));
    }
    cr_expect_str_eq(found, expected, "%s", key);
    json_object_put(all);
}

/* What counts then is the code's or the domain's value, not the configuration's. */
Test(print, shows_what_counts_where_a_step_says_nothing)
{
    OWNED(config) c =
        load(.set = { "domains.fx.enabled=true", "command-steps.s.timeout=5s",
                      "command-steps.t.wait-timeout=0", "processes.Type.reply-queue=a__replies" });
    char *text = printed(c, false), *json = printed(c, true);

    expect_line(text, "command-steps.s.timeout", "5s", "--set");
    expect_line(text, "command-steps.t.wait-timeout", "0s", "--set");
    static const char *const open[][2] = {
        { "command-steps.s.domain", "the code's" },
        { "command-steps.s.command-type", "the code's" },
        { "command-steps.t.timeout", "the code's, else the domain's" },
        { "command-steps.s.max-attempts", "the code's, else the domain's" },
        { "command-steps.s.wait-timeout", "the code's, else until the deadline" },
        { "processes.Type.deadline-action", "the code's" },
        { "processes.Type.default-wait-timeout", "the code's, else worker.defaults" },
        { "worker.defaults.default-wait-timeout", "1h; of a manager none" },
    };
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        char row[256];
        const char *line = strstr(text, open[i][0]);
        cr_assert(line, "%s", open[i][0]);
        snprintf(row, sizeof row, "(%s)", open[i][1]);
        const char *value = strstr(line, row);
        cr_expect(value && value < strchr(line, '\n'), "%.120s", line);
        snprintf(row, sizeof row, "null|%s|default", open[i][1]);
        expect_row(json, open[i][0], row);
    }
    free(text);
    free(json);
}

/* S3's settings of a worker, once for all domains. */
Test(print, shows_that_a_domain_has_it_from_the_defaults_of_all)
{
    OWNED(config) c =
        load(.env = { "COMMANDBUS_WORKER_DEFAULTS_VISIBILITY_TIMEOUT=45s" },
             .set = { "domains.fx.enabled=true", "domains.risk.visibility-timeout=20s" });
    char *text = printed(c, false), *json = printed(c, true);

    expect_line(text, "domains.fx.visibility-timeout", "45s", "worker.defaults.visibility-timeout");
    expect_line(text, "domains.risk.visibility-timeout", "20s", "--set");
    expect_line(text, "domains.fx.poll-interval", "1s", "default");
    expect_line(text, "worker.defaults.visibility-timeout", "45s", "COMMANDBUS_WORKER_DEFAULTS");
    expect_row(json, "domains.fx.visibility-timeout",
               "\"45s\"||worker.defaults.visibility-timeout");
    free(text);
    free(json);
}

Test(print, shows_no_password)
{
    char set[600];
    snprintf(set, sizeof set, "database.url-file=%s",
             write_file("url", "postgresql://bob:hunter2@db/x\n"));
    OWNED(config) c = load(.set = { "domains.fx.enabled=true", set,
                                    "database.listen-url=host=db password='hunter2 x' user=bob" });

    for (int json = 0; json < 2; json++) {
        char *text = printed(c, json);
        cr_expect_null(strstr(text, "hunter2"), "%s", text);
        cr_expect(strstr(text, "postgresql://bob:***@db/x"), "%s", text);
        cr_expect(strstr(text, "host=db password=*** user=bob"), "%s", text);
        free(text);
    }
}

/* DESIGN 5: what a set calls its secret is not ours to know, but its name tells. */
Test(print, shows_no_secret_of_a_set)
{
    OWNED(config) c =
        load(.set = { "domains.fx.enabled=true", "handlers.fx.api-token=hunter2",
                      "handlers.fx.signing-key=hunter2", "handlers.fx.credentials=a hunter2 b",
                      "handlers.fx.url=https://bob:hunter2@fx.example/v1?access_token=hunter2",
                      "handlers.fx.desk=London" });

    for (int json = 0; json < 2; json++) {
        char *text = printed(c, json);
        cr_expect_null(strstr(text, "hunter2"), "%s", text);
        cr_expect(strstr(text, "https://bob:***@fx.example/v1?access_token=***"), "%s", text);
        cr_expect(strstr(text, "London"), "%s", text);
        free(text);
    }
}

/* DESIGN 5: a line is a key. */
Test(print, keeps_a_value_on_its_line)
{
    OWNED(config) c =
        load(.set = { "domains.fx.enabled=true", "handlers.fx.desk=a\nhttp.port 1 --set\x1b[2K" });
    char *text = printed(c, false);

    expect_line(text, "handlers.fx.desk", "a?http.port", "1");
    cr_expect_null(strchr(text, '\x1b'), "%s", text);
    free(text);
}

Test(print, redacts_passwords_wherever_they_stand)
{
    static const char *const cases[][2] = {
        { "postgresql:///commandbus", "postgresql:///commandbus" },
        { "postgresql://bob@db:5432/x", "postgresql://bob@db:5432/x" },
        { "postgresql://db:5432/x", "postgresql://db:5432/x" },
        { "postgresql://bob:p@db/x", "postgresql://bob:***@db/x" },
        { "postgres://bob:p@ss/w?rd@db/x", "postgres://bob:***@db/x" },
        { "POSTGRESQL://bob:p@db/x", "POSTGRESQL://bob:***@db/x" },
        { "postgresql://db/x?user=b&password=p&sslmode=require",
          "postgresql://db/x?user=b&password=***&sslmode=require" },
        { "postgresql://db/x?sslpassword=p", "postgresql://db/x?sslpassword=***" },
        { "postgresql://db/x?%70assword=p", "postgresql://db/x?%70assword=***" },
        { "host=db password=p user=b", "host=db password=*** user=b" },
        { "host=db password = 'a \\' b' user=b", "host=db password = *** user=b" },
        { "password=", "password=***" },
        { "PASSWORD=p host=db", "PASSWORD=*** host=db" },
        { "passfile=/x/pgpass dbname=d", "passfile=*** dbname=d" },
        { "p=&p=&p=", "p=&p=&p=" },
        { "", "" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *redacted = config_redact(cases[i][0]);
        cr_expect_str_eq(redacted, cases[i][1]);
        free(redacted);
    }
}
