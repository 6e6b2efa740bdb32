/* What is refused, and how: one line that says where, what, and what would do. CFG.4 */
#include "config_support.h"

#include <sys/stat.h>

TestSuite(errors, .init = folder_open, .fini = folder_close);

Test(errors, name_file_line_and_the_nearest_key)
{
    refused_file("bad.cfg:3: unknown key 'domains.fx.concurent-messages'; did you mean "
                 "concurrent-messages?",
                 "domains = {\n  fx = {\n    concurent-messages = 2;\n  };\n};\n");
    refused_file("bad.cfg:1: unknown key 'domain'; did you mean domains?", "domain = { };");
    refused_file("bad.cfg:2: unknown key 'http.prot'; did you mean port?",
                 "http = {\nprot = 1; };");
    refused_file("concurrent_messages'; did you mean concurrent-messages?",
                 "domains = { fx = { concurrent_messages = 2; }; };");
}

Test(errors, list_the_keys_when_none_is_near)
{
    refused_file("unknown key 'log.zzzzzz'; use one of level, format", "log = { zzzzzz = true; };");
    refused_file("use one of database, features, domains", "zzzzzz = 1;");
}

Test(errors, of_wrong_types_say_the_right_one)
{
    refused_file("bad.cfg:1: domains.fx.concurrent-messages must be a whole number",
                 "domains = { fx = { concurrent-messages = \"2\"; }; };");
    refused_file("concurrent-messages must be a whole number",
                 "domains = { fx = { concurrent-messages = 2.5; }; };");
    refused_file("domains.fx.enabled must be true or false",
                 "domains = { fx = { enabled = \"true\"; }; };");
    refused_file("domains.fx.enabled must be true or false",
                 "domains = { fx = { enabled = 1; }; };");
    refused_file("database.url must be text", "database = { url = 5; };");
    refused_file("retry-backoff must be a list of durations",
                 "domains = { fx = { retry-backoff = 5; }; };");
    refused_file("retry-backoff must be a list of durations",
                 "domains = { fx = { retry-backoff = [true]; }; };");
    refused_file("handlers must be a list of names", "domains = { fx = { handlers = [1]; }; };");
    refused_file("domains.fx.enabled must be true or false",
                 "domains = { fx = { enabled = { a = 1; }; }; };");
    refused_file("domains must be a group", "domains = 5;");
    refused_file("domains.fx must be a group", "domains = { fx = 5; };");
    refused_file("http must be a group", "http = [1];");
}

/* One setting out of its range each, and what is said. */
Test(errors, of_ranges_name_them)
{
    static const char *const cases[][2] = {
        { "domains.fx.concurrent-messages=0", "is 0: it must be 1 to 10000" },
        { "domains.fx.concurrent-messages=-1", "is -1: it must be 1 to 10000" },
        { "domains.fx.concurrent-messages=10001", "it must be 1 to 10000" },
        { "domains.fx.concurrent-messages=99999999999999999999", "it must be 1 to 10000" },
        { "domains.fx.concurrent-messages=2x", "is 2x: it must be 1 to 10000" },
        { "domains.fx.concurrent-processes=-1", "it must be 0 to 10000" },
        { "domains.fx.prefetch=10001", "it must be 0 to 10000" },
        { "domains.fx.fleet-limit=-1", "it must be 0 to" },
        { "domains.fx.max-attempts=0", "it must be 1 to 1000" },
        { "domains.fx.visibility-timeout=999ms", "is 999ms: it must be 1s to 1d" },
        { "domains.fx.visibility-timeout=25h", "it must be 1s to 1d" },
        { "domains.fx.visibility-timeout=-5s", "it must be 1s to 1d" },
        { "domains.fx.poll-interval=9ms", "it must be 10ms to 1h" },
        { "domains.fx.poll-interval=2h", "it must be 10ms to 1h" },
        { "domains.fx.handler-timeout=0", "it must be 1s to 1d" },
        { "domains.fx.handler-timeout=1500ms", "it must be whole seconds" },
        { "domains.fx.retry-backoff=[10, 31d]", "it must be 0s to 30d" },
        { "domains.fx.retry-backoff=10,,20", "invalid duration; use 500ms" },
        { "domains.fx.handlers=", "one name at least" },
        { "domains.fx.handlers=../../evil", "use a-z first, then a-z, 0-9 and _, at most 47" },
        { "domains.fx.handlers=my-set", "use a-z first, then a-z, 0-9 and _, at most 47" },
        { "domains.fx.handlers=fx, fx", "names fx twice" },
        { "command-steps.s.timeout=0", "it must be 1s to 1d" },
        { "command-steps.s.domain=FX", "is FX: use a-z first" },
        { "command-steps.s.command-type=Book Fx", "use a letter first" },
        { "processes.P.deadline-action=PANIC", "it must be TSQ, COMPENSATE or FAIL" },
        { "processes.P.reply-queue=fx__commands", "never go to a __commands queue" },
        { "http.port=65536", "it must be 0 to 65535" },
        { "http.port=-1", "it must be 0 to 65535" },
        { "http.route-timeout=0", "it must be 100ms to 1h" },
        { "log.level=loud", "it must be debug, info, warn or error" },
        { "log.format=xml", "it must be logfmt or json" },
        { "limits.payload=1023", "it must be 1KiB to 64MiB" },
        { "limits.payload=65MiB", "it must be 1KiB to 64MiB" },
        { "limits.payload=-1", "it must be 1KiB to 64MiB" },
        { "retention.audit=-1d", "it must be 0s to" },
        { "database.url=", "database.url is empty" },
        { "worker.name=a b", "is a b: use letters, digits" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i][1], .set = { "domains.fx.enabled=true", cases[i][0] });
}

Test(errors, ask_for_a_unit_where_a_bare_number_could_mean_anything)
{
    refused("--set: domains.fx.poll-interval is 5: invalid duration; add a unit",
            .set = { "domains.fx.poll-interval=5" });
    refused_file("worker.kill-grace is 30: invalid duration; add a unit",
                 "worker = { kill-grace = 30; };");
}

Test(errors, of_set_say_how_to_write_it)
{
    refused("write path=value", .set = { "http.port" });
    refused("--set: unknown key 'http.prot'; did you mean port?", .set = { "http.prot=1" });
    refused("--set: unknown key 'htp.port'; did you mean http?", .set = { "htp.port=1" });
    refused("--set: unknown key 'domains.fx'", .set = { "domains.fx=1" });
    refused("--set: unknown key 'domains.enabled'", .set = { "domains.enabled=true" });
    refused("--set: unknown key 'http.a.port'; did you mean http.port?",
            .set = { "http.a.port=1" });
    refused("unknown key", .set = { "=1" });
    refused("unknown key", .set = { ".=1" });
    refused("unknown key", .set = { "..=1" });
    refused("unknown key 'domains..enabled'; did you mean domains.<d>.enabled?",
            .set = { "domains..enabled=true" });
}

Test(errors, of_domain_names_say_the_rule)
{
    static const char *const names[] = { "FX",  "1fx", "a__b",
                                         "fx_", "f-x", "abcdefghijklmnopqrstuvwxyz0123456789ab" };
    char text[128];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(text, sizeof text, "domains.%s.enabled=true", names[i]);
        refused(": use ", .set = { text });
    }
    refused_file("bad.cfg:2: domains.FX: use a-z first", "domains = {\nFX = {}; };");
    /* The longest that fits PGMQ's queue names. */
    OWNED(config) c = load(.set = { "domains.abcdefghijklmnopqrstuvwxyz0123456789a.enabled=true" });
}

Test(errors, of_timeouts_that_do_not_fit_name_both_places)
{
    write_file("bad.cfg", "domains = { fx = {\nvisibility-timeout = \"10s\"; }; };");
    refused("--set: domains.fx.handler-timeout is 11s: it must not be longer than "
            "visibility-timeout, 10s (",
            .profiles = "bad", .set = { "domains.fx.handler-timeout=11s" });
    refused("bad.cfg:2)", .profiles = "bad", .set = { "domains.fx.handler-timeout=11s" });
}

Test(errors, of_an_instance_with_nothing_to_do_say_how_to_enable_a_domain)
{
    refused("COMMANDBUS_DOMAINS_<NAME>_ENABLED=true", .profiles = NULL);
    refused("no domain is enabled", .set = { "domains.fx.enabled=false" });
    refused("no domain is enabled", .set = { "features.command-handlers=false" });
}

Test(errors, of_too_many_slots_say_the_most)
{
    refused("have 10001 concurrent-messages together",
            .set = { "domains.a.concurrent-messages=10000", "domains.b.concurrent-messages=1" });
    OWNED(config) c = load(.set = { "domains.a.concurrent-messages=10000",
                                    "domains.b.concurrent-messages=1", "domains.b.enabled=false" });
}

Test(errors, of_profiles_name_those_there_are)
{
    write_file("commandbus.cfg", "");
    write_file("b-worker.cfg", "");
    write_file("a-worker.cfg", "");

    refused("profile 'c-worker' is not in ", .profiles = "c-worker");
    refused("there are a-worker, b-worker", .profiles = "a-worker,c-worker");
    refused("profile '../x' is not in", .profiles = "../x");
    refused("there is no such folder", .dir = "not-there");
}

Test(errors, of_invalid_files_come_from_us_and_not_from_the_parser)
{
    char path[128], *long_text = malloc(1100 * 1024);

    refused_file("bad.cfg:2: syntax error", "http = {\nport = ; };");
    refused_file("bad.cfg:1: duplicate setting name", "http = { port = 1; port = 2; };");
    refused_file("@include is not for these files", "\n@include \"other.cfg\"\n");
    refused_file("bad.cfg:2: the text that begins here has no closing quote",
                 "http = {\nbind = \"127.0.0.1\\\";\n};\n");
    write_bytes("bad.cfg", "http = { port = 1; };\0x", 23);
    refused("holds a NUL byte", .profiles = "bad");

    memset(long_text, ' ', 1100 * 1024);
    write_bytes("bad.cfg", long_text, 1024 * 1024 + 1);
    refused("bad.cfg: is longer than 1024 KiB", .profiles = "bad");
    free(long_text);

    snprintf(path, sizeof path, "%s/dir.cfg", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    refused("dir.cfg: not a file", .profiles = "dir");
    rmdir(path);
    snprintf(path, sizeof path, "%s/pipe.cfg", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    refused("pipe.cfg: not a file", .profiles = "pipe");
}

/* libconfig would keep the lower 32 bits: 4294967298 slots would become 2. */
Test(errors, of_numbers_too_large_for_the_parser_come_before_it_cuts_them)
{
    refused_file("bad.cfg:1: 4294967298 is too large a number",
                 "domains = { fx = { concurrent-messages = 4294967298; }; };");
    refused_file("is too large a number", "http = { port = 0x100000001; };");
    refused_file("is too large a number", "http = { port = 99999999999999999999L; };");
    refused_file("bad.cfg:4: 2147483648 is too large",
                 "# 99999999999 in prose\n/* 99999999999\n*/ log = { level = \"warn\"; };\n"
                 "http = { port = 2147483648; };");
    /* Digits in names, texts and comments are none of them. */
    write_file("good.cfg", "domains = { a99999999999 = { }; }; // 99999999999\n"
                           "worker = { name = \"a-99999999999\"; };");
    OWNED(config) c = load(.profiles = "good");
}

Test(errors, of_secrets_do_not_repeat_them)
{
    config *c = NULL;
    cb_error e = { 0 };
    char set[600];

    write_file("both.cfg",
               "database = { url = \"postgresql://u:hunter2@h/d\"; url-file = \"x\"; };");
    cr_assert(!try_loading(&(how){ .profiles = "both" }, &c, &e));
    cr_expect(strstr(e.message, "are both set: keep one"), "%s", e.message);
    cr_expect_null(strstr(e.message, "hunter2"), "%s", e.message);

    refused("there is no such file",
            .set = { "domains.fx.enabled=true", "database.url-file=not-there" });
    snprintf(set, sizeof set, "database.url-file=%s", write_file("empty", "\n"));
    refused("the file is empty", .set = { "domains.fx.enabled=true", set });
}
