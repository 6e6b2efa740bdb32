/* The effective configuration of one instance: files, profiles, environment, --set, in that
 * order, later wins. Every key is a line of the table in keys.c; this struct is where their
 * values go. */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include <commandbus/error.h>
#include <commandbus/event.h>
#include <commandbus/owned.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

/* domains.<name>.* */
typedef struct {
    char *name;
    bool enabled;
    int64_t concurrent_messages;
    int64_t concurrent_processes; /* 0: as many as concurrent_messages */
    int64_t fleet_limit;
    bool fleet_limit_is_set; /* said somewhere, 0 too; else what the database has stays */
    int64_t prefetch;
    double visibility_timeout; /* seconds, like every duration here */
    double poll_interval;
    bool use_notify;
    double handler_timeout; /* whole seconds */
    double *retry_backoff;
    size_t n_retry_backoff;
    int64_t max_attempts;
    char **handlers; /* names of handler sets */
    size_t n_handlers;
} config_domain;

/* command-steps.<name>.*; what nobody said is the code's: config_who_said tells. */
typedef struct {
    char *name;
    char *domain;
    char *command_type;
    double timeout;
    double wait_timeout; /* 0, said: until the deadline */
    int64_t max_attempts;
} config_step;

/* processes.<Type>.*, likewise. */
typedef struct {
    char *name;
    double default_wait_timeout;
    char *deadline_action; /* TSQ, COMPENSATE or FAIL; NULL: the code's */
    char *reply_queue;     /* NULL: <domain>__replies */
} config_process;

/* handlers.<set>.<key>: what sets ask to be told. Their names are theirs, so that one item is
 * one value. */
typedef struct {
    char *name; /* "reporting.output-folder" */
    char *value;
} config_set_value;

typedef struct {
    char *database_url;
    char *listen_url;                          /* or NULL */
    char *database_url_file, *listen_url_file; /* or NULL: where the two above were read from */
    bool prepared_statements;
    bool command_handlers, process_execution, reply_processing, http_api;
    config_domain *domains;
    size_t n_domains;
    config_step *steps;
    size_t n_steps;
    config_process *processes;
    size_t n_processes;
    config_set_value *set_values;
    size_t n_set_values;
    struct {
        int64_t concurrent_messages;
        double visibility_timeout, poll_interval;
        bool use_notify;
    } defaults; /* of domains; they have them already */
    double default_wait_timeout;
    char *worker_name; /* never NULL after loading: host-pid */
    char *modules_dir;
    double shutdown_timeout, kill_grace, unknown_type_grace, reply_grace;
    char *http_bind;
    int64_t http_port;               /* 0: no HTTP */
    char *http_token_file;           /* or NULL */
    char *http_responder_token_file; /* or NULL */
    double http_route_timeout;
    int64_t http_api_port; /* 0: the same */
    double http_request_timeout;
    cb_level log_level;
    log_format log_format;
    int64_t payload_limit;                                           /* bytes */
    double keep_commands, keep_audit, keep_archives, keep_processes; /* seconds; 0: for ever */
    char *profile;                                                   /* "a,b" or "" */
    struct config_origins *origins; /* where each value came from, for --check-config */
} config;

/* Where to look. Everything is borrowed for the call. */
typedef struct {
    const char *config_dir;      /* NULL: the installed one, if it is there */
    const char *profiles;        /* "a,b"; NULL: COMMANDBUS_PROFILE, else none */
    const char *const *settings; /* "path=value" of each --set */
    size_t n_settings;
    char *const *environment; /* as environ */
} config_request;

/* Called for each warning, such as an unknown COMMANDBUS_ variable. */
typedef void config_warn_fn(const char *message, const char *hint, void *arg);

/* CB_MISUSE with one clear line (file:line, the nearest known key) when something is wrong. */
bool config_load(const config_request *request, config_warn_fn *warn, void *arg, config **ret,
                 cb_error *e) CB_NODISCARD;
void config_free(config *c);
DEFINE_OWNED(config, config_free)

/* --check-config: every key with its value and its origin, then the limits it gives. Passwords are
 * redacted. */
void config_print(const config *c, bool json, int fd);
/* A copy of a URL or conninfo whose passwords are ***; rather too much is hidden than too
 * little. The caller frees it; NULL when out of memory. */
char *config_redact(const char *url);

#endif
