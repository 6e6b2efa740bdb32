/* What follows from the values, and what does not fit together. */
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_sources.h"
#include "fail.h"

#define MOST_SLOTS      10000
#define SECRET_LIMIT    (64 * 1024)
#define DEFAULT_TIMEOUT 30.0
#define NAME_LENGTH     100

static bool check_set_text(char **value, const char *text, cb_error *e)
{
    free(*value);
    *value = strdup(text);
    return *value || fail_memory(e);
}

static const char *check_origin(const config_said *said)
{
    return said ? said->origin : "default";
}

/* A URL from a file, for secrets that are mounted. Of the URL and the file the later source
 * counts. */
static bool check_secret(config *c, const char *key, const char *file_key, char **url, char *file,
                         cb_error *e)
{
    const config_said *said = config_who_said(c, key, NULL);
    const config_said *file_said = config_who_said(c, file_key, NULL);
    char *text = NULL;

    if (!file || (said && said->layer > file_said->layer))
        return true;
    if (said && said->layer == file_said->layer)
        return cb_fail(e, CB_MISUSE, "%.200s: %s and %s are both set: keep one",
                       check_origin(file_said), key, file_key);
    if (!config_read_text(file, SECRET_LIMIT, &text, e))
        return cb_fail_while(e, "reading %s (%.100s)", file_key, check_origin(file_said));
    if (!text)
        return cb_fail(e, CB_MISUSE, "%.150s: %s is %.200s: there is no such file",
                       check_origin(file_said), file_key, file);
    text[strcspn(text, "\r\n")] = '\0';
    bool good = *text ? check_set_text(url, text, e)
                      : cb_fail(e, CB_MISUSE, "%.150s: %s is %.200s: the file is empty",
                                check_origin(file_said), file_key, file);
    free(text);
    return good;
}

/* host-pid, as far as a name may go. */
static bool check_worker_name(config *c, cb_error *e)
{
    char host[NAME_LENGTH - 20] = "", name[NAME_LENGTH];

    if (c->worker_name)
        return true;
    if (gethostname(host, sizeof host - 1) < 0 || !*host)
        snprintf(host, sizeof host, "worker");
    snprintf(name, sizeof name, "%s-%ld", host, (long)getpid());
    return check_set_text(&c->worker_name, name, e);
}

static bool check_modules_dir(config *c, cb_error *e)
{
    char folder[PATH_MAX];

    if (c->modules_dir)
        return true;
    if (!config_modules_folder(folder, sizeof folder))
        return cb_fail(e, CB_MISUSE,
                       "worker.modules-dir is not set, and this program cannot tell "
                       "where it lies itself");
    return check_set_text(&c->modules_dir, folder, e);
}

/* What an item does not say and has a place where it is said for all of them. */
static bool check_fallback(config *c, const config_key *key, cb_error *e)
{
    const config_key *from = key_named(key->fallback);
    const config_section *section = key_section(key);
    json_object *value = key_json(from, c);
    bool good = true;

    for (size_t i = 0; good && i < config_count(c, section); i++) {
        void *item = config_at(c, section, i);
        if (!config_who(c, key, config_item_name(section, item)))
            good = key_parse(key, item, json_object_get_string(value), e);
    }
    json_object_put(value);
    return good;
}

static bool check_fallbacks(config *c, cb_error *e)
{
    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        if (key->fallback && !check_fallback(c, key, e))
            return false;
    }
    return true;
}

/* A handler starts only with as much lease as it may take, so its timeout fits into the lease. What
 * is not said follows what is. */
static bool check_timeouts(config_domain *d, const config *c, cb_error *e)
{
    const config_said *timeout = config_who_said(c, "domains.<d>.handler-timeout", d->name);
    const config_said *lease = config_who_said(c, "domains.<d>.visibility-timeout", d->name);

    if (!timeout)
        d->handler_timeout = d->visibility_timeout < DEFAULT_TIMEOUT
                                 ? (double)(long)d->visibility_timeout
                                 : DEFAULT_TIMEOUT;
    else if (!lease && d->visibility_timeout < d->handler_timeout)
        d->visibility_timeout = d->handler_timeout;
    if (d->handler_timeout > d->visibility_timeout)
        return cb_fail(e, CB_MISUSE,
                       "%.150s: domains.%s.handler-timeout is %.0fs: it must not be longer than "
                       "visibility-timeout, %gs (%.100s)",
                       check_origin(timeout), d->name, d->handler_timeout, d->visibility_timeout,
                       check_origin(lease));
    return true;
}

static bool check_domain(const config_loader *l, config_domain *d, cb_error *e)
{
    config *c = l->config;

    d->fleet_limit_is_set = config_who_said(c, "domains.<d>.fleet-limit", d->name) != NULL;
    if (d->concurrent_processes == 0)
        d->concurrent_processes = d->concurrent_messages;
    if (d->enabled && d->fleet_limit && d->fleet_limit < d->concurrent_messages)
        config_warn(l, "the rest of its slots stays idle; lower concurrent-messages",
                    "domains.%s: fleet-limit %lld is below concurrent-messages %lld", d->name,
                    (long long)d->fleet_limit, (long long)d->concurrent_messages);
    if (!d->handlers) {
        d->handlers = calloc(1, sizeof *d->handlers);
        if (!d->handlers || !(d->handlers[0] = strdup(d->name)))
            return fail_memory(e);
        d->n_handlers = 1;
    }
    return check_timeouts(d, c, e);
}

static bool check_domains(const config_loader *l, cb_error *e)
{
    config *c = l->config;
    int64_t slots = 0;
    size_t enabled = 0;

    for (size_t i = 0; i < c->n_domains; i++) {
        if (!check_domain(l, &c->domains[i], e))
            return false;
        enabled += c->domains[i].enabled;
        slots += c->domains[i].enabled ? c->domains[i].concurrent_messages : 0;
    }
    if (slots > MOST_SLOTS)
        return cb_fail(e, CB_MISUSE,
                       "the enabled domains have %lld concurrent-messages together: %d is the most "
                       "for one instance, start more of them",
                       (long long)slots, MOST_SLOTS);
    if (enabled == 0 && (c->command_handlers || c->process_execution || c->reply_processing))
        return cb_fail(
            e, CB_MISUSE,
            "no domain is enabled, so there is nothing to do: choose a --profile, set "
            "COMMANDBUS_DOMAINS_<NAME>_ENABLED=true, or --set domains.<name>.enabled=true");
    return true;
}

static bool check_has_set(const config *c, const char *name, size_t length)
{
    for (size_t i = 0; i < c->n_domains; i++) {
        const config_domain *d = &c->domains[i];
        for (size_t h = 0; h < d->n_handlers; h++) {
            if (strlen(d->handlers[h]) == length && strncmp(d->handlers[h], name, length) == 0)
                return true;
        }
    }
    return false;
}

/* No error: a file may say what another profile's sets need. */
static void check_set_values(const config_loader *l)
{
    const config *c = l->config;

    for (size_t i = 0; i < c->n_set_values; i++) {
        const char *name = c->set_values[i].name;
        if (!check_has_set(c, name, strcspn(name, ".")))
            config_warn(l, "domains.<d>.handlers names the sets: check the spelling",
                        "handlers.%s is told to nobody: no domain has that set", name);
    }
}

static bool check_is_loopback(const char *address)
{
    unsigned char v4[4];
    struct in6_addr v6;

    if (inet_pton(AF_INET, address, v4) == 1)
        return v4[0] == 127;
    return inet_pton(AF_INET6, address, &v6) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127));
}

/* No error: a pod listens on every address to be probed, and something else may guard the port. */
static void check_routes(const config_loader *l)
{
    const config *c = l->config;

    if (c->http_api && c->http_port != 0 && !c->http_token_file && !check_is_loopback(c->http_bind))
        config_warn(l,
                    "set http.token-file, or http.bind to 127.0.0.1, or see to it that only those "
                    "who may ask reach the port",
                    "features.http-api serves routes on http.bind %.100s without http.token-file: "
                    "whoever reaches the port may ask them",
                    c->http_bind);
}

bool config_check(config_loader *l, cb_error *e)
{
    config *c = l->config;

    if (!c->command_handlers && !c->process_execution && !c->reply_processing && !c->http_api)
        config_warn(l, "switch on one of features.*", "every feature is off");
    if (!(check_secret(c, "database.url", "database.url-file", &c->database_url,
                       c->database_url_file, e) &&
          check_secret(c, "database.listen-url", "database.listen-url-file", &c->listen_url,
                       c->listen_url_file, e) &&
          check_worker_name(c, e) && check_modules_dir(c, e) && check_fallbacks(c, e) &&
          check_domains(l, e)))
        return false;
    check_set_values(l);
    check_routes(l);
    return true;
}
