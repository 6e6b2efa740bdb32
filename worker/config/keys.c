/* Every configuration key, one entry each, and the rules that values and names keep. */
#include "keys.h"

#include <stdio.h>
#include <string.h>

#include "defaults.h"
#include "name_rules.h"

#define TOP(member)        .offset = offsetof(config, member)
#define IN_DOMAIN(member)  .offset = offsetof(config_domain, member)
#define IN_STEP(member)    .offset = offsetof(config_step, member)
#define IN_PROCESS(member) .offset = offsetof(config_process, member)

#define IN_SET(member) .offset = offsetof(config_set_value, member)

#define TEXT_OF(name)    DEFAULT_TEXT(DEFAULT_##name)
#define SECONDS_OF(name) DEFAULT_TEXT(DEFAULT_##name##_SECONDS) "s"

#define MINUTES     60.0
#define HOURS       3600.0
#define DAYS        86400.0
#define TEN_YEARS   (3650 * DAYS)
#define SLOTS_LIMIT 10000

static const char *const levels[] = { "debug", "info", "warn", "error", NULL };
static const char *const formats[] = { "logfmt", "json", NULL };
static const char *const deadline_actions[] = { "TSQ", "COMPENSATE", "FAIL", NULL };

/* ---- rules of values and names, beside those of the bus in name_rules.h ---- */

#define LETTERS NAME_LOWER NAME_UPPER
#define ALNUM   NAME_LOWER NAME_UPPER NAME_DIGITS

enum {
    NAME_LIMIT = 100
};

static const char *rule_present(const char *text)
{
    return *text ? NULL : "it must not be empty";
}

static const char *rule_reply_queue(const char *text)
{
    const char *rule = name_rule_queue(text);

    if (rule)
        return rule;
    return name_ends_with(text, "__commands") ? "replies never go to a __commands queue" : NULL;
}

/* "<set>.<key>". */
static const char *rule_set_setting(const char *text)
{
    const char *dot = strchr(text, '.');
    char set[NAME_SET_LIMIT + 1];

    if (!dot || dot - text > NAME_SET_LIMIT)
        return "write handlers.<set>.<key>";
    memcpy(set, text, (size_t)(dot - text));
    set[dot - text] = '\0';
    if (name_rule_set(set))
        return name_rule_set(set);
    return name_is_made_of(dot + 1, NAME_LOWER, NAME_LOWER NAME_DIGITS "-",
                           NAME_LIMIT - NAME_SET_LIMIT)
               ? NULL
               : "use a-z first, then a-z, 0-9 and -, at most 53 characters for a setting";
}

const char *rule_profile_name(const char *text)
{
    return name_is_made_of(text, ALNUM, ALNUM "_-", NAME_LIMIT) ? NULL
                                                                : "use letters, digits, _ and -";
}

static const char *rule_item_name(const char *text)
{
    return name_is_made_of(text, LETTERS, ALNUM "_-", NAME_LIMIT)
               ? NULL
               : "use a letter first, then letters, digits, _ and -, at most 100 characters";
}

static const char *rule_worker_name(const char *text)
{
    return name_is_made_of(text, ALNUM, ALNUM "_.-", NAME_LIMIT)
               ? NULL
               : "use letters, digits, _ . and -, at most 100 characters";
}

/* ---- the table ---- */

/* clang-format off: one key, one entry that reads like a row. */
const config_key config_keys[] = {
    { "database.url", KEY_TEXT, TOP(database_url), .secret = true,
      .initial = "postgresql:///commandbus", .rule = rule_present,
      .help = "URL or conninfo; a PgBouncer in transaction mode will do" },
    { "database.url-file", KEY_TEXT, TOP(database_url_file), .without = "none",
      .help = "a file that holds it instead, such as a mounted Secret" },
    { "database.listen-url", KEY_TEXT, TOP(listen_url), .secret = true, .without = "database.url",
      .help = "where LISTEN works when url is a PgBouncer" },
    { "database.listen-url-file", KEY_TEXT, TOP(listen_url_file), .without = "none",
      .help = "a file that holds it instead" },
    { "database.prepared-statements", KEY_BOOL, TOP(prepared_statements), .initial = "true",
      .help = "prepare what repeats, unless behind a pooler; false: never" },

    { "features.command-handlers", KEY_BOOL, TOP(command_handlers), .initial = "true",
      .help = "run the commands of the enabled domains" },
    { "features.process-execution", KEY_BOOL, TOP(process_execution), .initial = "true",
      .help = "run processes" },
    { "features.reply-processing", KEY_BOOL, TOP(reply_processing), .initial = "true",
      .help = "deliver replies that wait in queues to their processes" },
    { "features.http-api", KEY_BOOL, TOP(http_api), .initial = "false",
      .help = "serve the HTTP routes of the handler sets" },

    { "domains.<d>.enabled", KEY_BOOL, IN_DOMAIN(enabled), .initial = "true",
      .help = "serve this domain" },
    { "domains.<d>.concurrent-messages", KEY_INTEGER, IN_DOMAIN(concurrent_messages),
      .initial = TEXT_OF(CONCURRENT_MESSAGES), .fallback = "worker.defaults.concurrent-messages",
      .min = 1, .max = SLOTS_LIMIT, .help = "handlers at a time in this instance" },
    { "domains.<d>.concurrent-processes", KEY_INTEGER, IN_DOMAIN(concurrent_processes),
      .initial = "0", .max = SLOTS_LIMIT,
      .help = "processes at a time; 0: as many as concurrent-messages" },
    { "domains.<d>.fleet-limit", KEY_INTEGER, IN_DOMAIN(fleet_limit), .initial = "0",
      .max = 1000000, .help = "leases over the whole fleet; 0: no limit" },
    { "domains.<d>.prefetch", KEY_INTEGER, IN_DOMAIN(prefetch), .initial = "0", .max = SLOTS_LIMIT,
      .help = "commands claimed beyond the free slots" },
    { "domains.<d>.visibility-timeout", KEY_DURATION, IN_DOMAIN(visibility_timeout),
      .initial = SECONDS_OF(VISIBILITY), .fallback = "worker.defaults.visibility-timeout", .min = 1,
      .max = 24 * HOURS, .help = "lease of a claimed command, renewed while it runs" },
    { "domains.<d>.poll-interval", KEY_DURATION, IN_DOMAIN(poll_interval),
      .initial = SECONDS_OF(POLL), .fallback = "worker.defaults.poll-interval", .min = 0.01,
      .max = 1 * HOURS, .help = "longest pause between two looks at the queue" },
    { "domains.<d>.use-notify", KEY_BOOL, IN_DOMAIN(use_notify), .initial = "true",
      .fallback = "worker.defaults.use-notify", .help = "be woken by NOTIFY; false: poll only" },
    { "domains.<d>.handler-timeout", KEY_DURATION, IN_DOMAIN(handler_timeout),
      .initial = SECONDS_OF(HANDLER_TIMEOUT), .min = 1, .max = 24 * HOURS, .whole_seconds = true,
      .help = "of commands that bring none; at most visibility-timeout" },
    { "domains.<d>.retry-backoff", KEY_DURATIONS, IN_DOMAIN(retry_backoff),
      .count = offsetof(config_domain, n_retry_backoff), .initial = TEXT_OF(RETRY_BACKOFF),
      .bare_seconds = true, .max = 30 * DAYS,
      .help = "wait after attempt 1, 2, ...; the last repeats" },
    { "domains.<d>.max-attempts", KEY_INTEGER, IN_DOMAIN(max_attempts),
      .initial = TEXT_OF(MAX_ATTEMPTS), .min = 1, .max = 1000,
      .help = "of commands that bring none" },
    { "domains.<d>.handlers", KEY_NAMES, IN_DOMAIN(handlers),
      .count = offsetof(config_domain, n_handlers), .without = "the domain's name",
      .rule = name_rule_set, .help = "handler sets; by default the one of the domain's name" },

    { "command-steps.<s>.domain", KEY_TEXT, IN_STEP(domain), .without = "the code's",
      .rule = name_rule_domain, .help = "where the step's command goes" },
    { "command-steps.<s>.command-type", KEY_TEXT, IN_STEP(command_type), .without = "the code's",
      .rule = name_rule_type, .help = "and its type" },
    { "command-steps.<s>.timeout", KEY_DURATION, IN_STEP(timeout), .min = 1, .max = 24 * HOURS,
      .without = "the code's, else the domain's", .whole_seconds = true,
      .help = "of one run of its handler; by default the code's, else the domain's" },
    { "command-steps.<s>.wait-timeout", KEY_DURATION, IN_STEP(wait_timeout), .max = TEN_YEARS,
      .without = "the code's, else until the deadline",
      .help = "until its final reply, then the TSQ; 0: until the process's deadline" },
    { "command-steps.<s>.max-attempts", KEY_INTEGER, IN_STEP(max_attempts), .min = 1, .max = 1000,
      .without = "the code's, else the domain's",
      .help = "of its command; by default the code's, else the domain's" },

    { "processes.<Type>.default-wait-timeout", KEY_DURATION, IN_PROCESS(default_wait_timeout),
      .min = 0.001, .max = TEN_YEARS, .without = "the code's, else worker.defaults",
      .help = "of waits for responses that say none; by default the code's" },
    { "processes.<Type>.deadline-action", KEY_WORD, IN_PROCESS(deadline_action),
      .choices = deadline_actions, .without = "the code's",
      .help = "past the deadline: TSQ, COMPENSATE or FAIL; by default the code's" },
    { "processes.<Type>.reply-queue", KEY_TEXT, IN_PROCESS(reply_queue),
      .without = "<domain>__replies", .rule = rule_reply_queue,
      .help = "by default <domain>__replies" },

    { "handlers.<set>.<key>", KEY_TEXT, IN_SET(value), .secret = true,
      .without = "the set's default", .help = "a setting of the set, by the name it gives it" },

    { "worker.name", KEY_TEXT, TOP(worker_name), .without = "host-pid", .rule = rule_worker_name,
      .help = "of this instance, for people; by default host-pid" },
    { "worker.modules-dir", KEY_TEXT, TOP(modules_dir), .without = "of the installation",
      .help = "folder of the handler sets; by default the installation's" },
    { "worker.shutdown-timeout", KEY_DURATION, TOP(shutdown_timeout), .initial = "30s",
      .max = 24 * HOURS, .help = "longest drain after SIGTERM" },
    { "worker.kill-grace", KEY_DURATION, TOP(kill_grace), .initial = SECONDS_OF(KILL_GRACE),
      .max = 24 * HOURS, .help = "a handler this long over its timeout ends the worker" },
    { "worker.unknown-type-grace", KEY_DURATION, TOP(unknown_type_grace),
      .initial = DEFAULT_TEXT(DEFAULT_UNKNOWN_TYPE_GRACE_MINUTES) "m", .max = 30 * DAYS,
      .help = "wait for a worker that knows a command's type" },
    { "worker.reply-grace", KEY_DURATION, TOP(reply_grace), .initial = SECONDS_OF(REPLY_GRACE),
      .max = 30 * DAYS, .help = "wait for the process that a reply is for" },

    { "worker.defaults.concurrent-messages", KEY_INTEGER, TOP(defaults.concurrent_messages),
      .initial = TEXT_OF(CONCURRENT_MESSAGES), .min = 1, .max = SLOTS_LIMIT,
      .help = "of domains that say none" },
    { "worker.defaults.visibility-timeout", KEY_DURATION, TOP(defaults.visibility_timeout),
      .initial = SECONDS_OF(VISIBILITY), .min = 1, .max = 24 * HOURS, .help = "likewise" },
    { "worker.defaults.poll-interval", KEY_DURATION, TOP(defaults.poll_interval),
      .initial = SECONDS_OF(POLL), .min = 0.01, .max = 1 * HOURS, .help = "likewise" },
    { "worker.defaults.use-notify", KEY_BOOL, TOP(defaults.use_notify), .initial = "true",
      .help = "likewise" },
    { "worker.defaults.default-wait-timeout", KEY_DURATION, TOP(default_wait_timeout), .min = 0.001,
      .max = TEN_YEARS, .without = DEFAULT_TEXT(DEFAULT_WAIT_TIMEOUT_HOURS) "h; of a manager none",
      .help = "of process types that say none, in a file or in their code" },

    { "http.bind", KEY_TEXT, TOP(http_bind), .initial = "127.0.0.1", .rule = rule_present,
      .help = "address of /livez, /readyz, /metrics and routes" },
    { "http.port", KEY_INTEGER, TOP(http_port), .initial = "9464", .max = 65535,
      .help = "0: no HTTP" },
    { "http.token-file", KEY_TEXT, TOP(http_token_file), .without = "none",
      .help = "a file with the bearer token that /metrics and routes ask for" },
    { "http.responder-token-file", KEY_TEXT, TOP(http_responder_token_file), .without = "none",
      .help = "a file with the bearer token of those who may answer any process over HTTP" },
    { "http.route-timeout", KEY_DURATION, TOP(http_route_timeout), .initial = "10s", .min = 0.1,
      .max = 1 * HOURS, .help = "a route that waits longer for the database is answered with 503" },
    { "http.api-port", KEY_INTEGER, TOP(http_api_port), .initial = "0", .max = 65535,
      .help = "port of the routes; 0: they share http.port with the probes" },
    { "http.request-timeout", KEY_DURATION, TOP(http_request_timeout), .initial = "10s", .min = 0.1,
      .max = 1 * HOURS, .help = "a request must be complete, and its answer read, within this" },

    { "log.level", KEY_CHOICE, TOP(log_level), .initial = "info", .choices = levels,
      .help = "debug, info, warn or error" },
    { "log.format", KEY_CHOICE, TOP(log_format), .initial = "logfmt", .choices = formats,
      .help = "logfmt or json" },

    { "limits.payload", KEY_SIZE, TOP(payload_limit),
      .initial = DEFAULT_TEXT(DEFAULT_PAYLOAD_MIB) "MiB", .min = 1024, .max = 64.0 * 1024 * 1024,
      .help = "largest result of a handler" },

    { "retention.commands", KEY_DURATION, TOP(keep_commands), .initial = "30d", .max = TEN_YEARS,
      .help = "finished commands; 0: keep for ever" },
    { "retention.audit", KEY_DURATION, TOP(keep_audit), .initial = "30d", .max = TEN_YEARS,
      .help = "audit records" },
    { "retention.archives", KEY_DURATION, TOP(keep_archives), .initial = "30d", .max = TEN_YEARS,
      .help = "messages in PGMQ's archives" },
    { "retention.processes", KEY_DURATION, TOP(keep_processes), .initial = "30d", .max = TEN_YEARS,
      .help = "finished processes and their history" },
};
const size_t n_config_keys = sizeof config_keys / sizeof *config_keys;

#define ITEMS(type, array)                                       \
    .item_size = sizeof(type), .items = offsetof(config, array), \
    .count = offsetof(config, n_##array)

const config_section config_sections[] = {
    { .name = "database" },
    { .name = "features" },
    { "domains", ITEMS(config_domain, domains), .name_rule = name_rule_domain },
    { "command-steps", ITEMS(config_step, steps), .name_rule = rule_item_name },
    { "processes", ITEMS(config_process, processes), .name_rule = rule_item_name },
    { "handlers", ITEMS(config_set_value, set_values), .name_rule = rule_set_setting,
      .is_open = true },
    { .name = "worker" },
    { .name = "worker.defaults" },
    { .name = "http" },
    { .name = "log" },
    { .name = "limits" },
    { .name = "retention" },
};
/* clang-format on */
const size_t n_config_sections = sizeof config_sections / sizeof *config_sections;

/* ---- finding in it ---- */

const config_section *section_find(const char *name)
{
    for (size_t i = 0; i < n_config_sections; i++) {
        if (strcmp(config_sections[i].name, name) == 0)
            return &config_sections[i];
    }
    return NULL;
}

static bool key_is_of(const config_key *key, const config_section *section)
{
    size_t length = strlen(section->name);
    return strncmp(key->path, section->name, length) == 0 && key->path[length] == '.';
}

/* The one of the longest name: worker.defaults lies within worker. */
const config_section *key_section(const config_key *key)
{
    const config_section *longest = NULL;

    for (size_t i = 0; i < n_config_sections; i++) {
        const config_section *section = &config_sections[i];
        if (key_is_of(key, section) && (!longest || strlen(section->name) > strlen(longest->name)))
            longest = section;
    }
    return longest;
}

const config_section *section_within(const config_section *section, const char *name)
{
    char path[KEY_PATH_SIZE];

    snprintf(path, sizeof path, "%s.%.80s", section->name, name);
    return section_find(path);
}

const config_key *key_named(const char *path)
{
    for (size_t i = 0; i < n_config_keys; i++) {
        if (strcmp(config_keys[i].path, path) == 0)
            return &config_keys[i];
    }
    return NULL;
}

const char *key_leaf(const config_key *key)
{
    return strrchr(key->path, '.') + 1;
}

const config_key *key_find(const config_section *section, const char *leaf)
{
    for (size_t i = 0; i < n_config_keys; i++) {
        if (key_section(&config_keys[i]) == section &&
            (section->is_open || strcmp(key_leaf(&config_keys[i]), leaf) == 0))
            return &config_keys[i];
    }
    return NULL;
}

const char *key_path(const config_key *key, const char *item, char *out, size_t size)
{
    if (item && key_section(key)->is_open)
        snprintf(out, size, "%s.%s", key_section(key)->name, item);
    else if (item)
        snprintf(out, size, "%s.%s.%s", key_section(key)->name, item, key_leaf(key));
    else
        snprintf(out, size, "%s", key->path);
    return out;
}
