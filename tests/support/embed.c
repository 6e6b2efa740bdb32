/* Workers in the test's process. */
#include "embed.h"

#include <pthread.h>
#include <stdio.h>

enum {
    MOST_WORKERS = 8,
    MOST_SETS = 8,
    MOST_NAMES = 64,
    MOST_DOMAINS = 4,
};

static cb_worker *workers[MOST_WORKERS];
static size_t n_workers;

static struct {
    cb_module module;
    cb_handler *handlers;
} sets[MOST_SETS];
static size_t n_sets;

/* Events by name. */
static struct {
    pthread_mutex_t mutex;
    struct {
        char name[48], code[64];
        size_t count;
    } names[MOST_NAMES];
    size_t n;
} told = { .mutex = PTHREAD_MUTEX_INITIALIZER };

cb_outcome succeed(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return CB_SUCCESS;
}

cb_outcome wait_at_gate(cb_context *ctx, const cb_command *command, json_object **result)
{
    gate_pass();
    return succeed(ctx, command, result);
}

void embed_open(void)
{
    bus_open();
}

void embed_close(void)
{
    gate_open();
    for (size_t i = 0; i < n_workers; i++)
        cb_worker_free(workers[i]);
    for (size_t i = 0; i < n_sets; i++)
        free(sets[i].handlers);
    bus_close();
}

static void remember(const cb_event *event, void *arg)
{
    size_t i = 0;

    (void)arg;
    pthread_mutex_lock(&told.mutex);
    while (i < told.n && strcmp(told.names[i].name, event->name) != 0)
        i++;
    if (i == told.n && told.n < MOST_NAMES)
        snprintf(told.names[told.n++].name, sizeof told.names[0].name, "%s", event->name);
    if (i < told.n) {
        told.names[i].count++;
        snprintf(told.names[i].code, sizeof told.names[0].code, "%s",
                 event->error_code ? event->error_code : "");
    }
    pthread_mutex_unlock(&told.mutex);
}

size_t embed_told(const char *name)
{
    size_t count = 0;

    pthread_mutex_lock(&told.mutex);
    for (size_t i = 0; i < told.n; i++) {
        if (strcmp(told.names[i].name, name) == 0)
            count = told.names[i].count;
    }
    pthread_mutex_unlock(&told.mutex);
    return count;
}

const char *embed_told_code(const char *name)
{
    static char code[64];

    code[0] = '\0';
    pthread_mutex_lock(&told.mutex);
    for (size_t i = 0; i < told.n; i++) {
        if (strcmp(told.names[i].name, name) == 0)
            memcpy(code, told.names[i].code, sizeof code);
    }
    pthread_mutex_unlock(&told.mutex);
    return code;
}

const cb_module *embed_set(const char *name, const cb_handler *handlers, size_t n)
{
    cr_assert_lt(n_sets, MOST_SETS);
    cb_handler *copy = calloc(n + 1, sizeof *copy);
    cr_assert(copy);
    if (n > 0)
        memcpy(copy, handlers, n * sizeof *copy);
    sets[n_sets].handlers = copy;
    sets[n_sets].module =
        (cb_module){ .abi = CB_MODULE_ABI, .name = name, .handlers = copy, .n_handlers = n };
    return &sets[n_sets++].module;
}

static cb_worker_domain_options quick(cb_worker_domain_options d)
{
    static const double at_once[] = { 0 };

    if (!d.domain)
        d.domain = "fx";
    if (d.visibility_timeout_seconds == 0)
        d.visibility_timeout_seconds = 2;
    if (d.poll_interval_seconds == 0)
        d.poll_interval_seconds = 0.1;
    if (!d.retry_backoff) {
        d.retry_backoff = at_once;
        d.n_retry_backoff = 1;
    }
    return d;
}

cb_worker *embed_worker_with(const embed_options *options)
{
    cb_worker_options o = options->worker;
    cb_worker_domain_options domains[MOST_DOMAINS] = { quick(options->domain) };
    const cb_module *own = NULL;
    cb_error e = { 0 };

    cr_assert(n_workers < MOST_WORKERS && options->n_more < MOST_DOMAINS);
    if (!domains[0].sets && options->n_handlers + options->n_processes > 0) {
        own = embed_set("test", options->handlers, options->n_handlers);
        sets[n_sets - 1].module.processes = options->processes;
        sets[n_sets - 1].module.n_processes = options->n_processes;
        domains[0].sets = &own;
        domains[0].n_sets = 1;
    }
    for (size_t i = 0; i < options->n_more; i++)
        domains[i + 1] = quick(options->more[i]);
    if (!o.domains) {
        o.domains = domains;
        o.n_domains = options->n_more + 1;
    }
    if (!o.url)
        o.url = bus.conninfo;
    if (!o.on_event)
        o.on_event = remember;
    cr_assert(cb_worker_open(&o, &workers[n_workers], &e), "%s", e.message);
    return workers[n_workers++];
}

cb_worker *embed_started(cb_worker *w)
{
    cb_error e = { 0 };

    cr_assert(cb_worker_start(w, &e), "%s", e.message);
    return w;
}

void embed_free(cb_worker *w)
{
    for (size_t i = 0; i < n_workers; i++) {
        if (workers[i] == w)
            workers[i] = NULL;
    }
    cb_worker_free(w);
}

bool embed_shows(cb_worker *w, const char *text)
{
    char *metrics = NULL;
    cb_error e = { 0 };

    cr_assert(cb_worker_metrics(w, &metrics, &e), "%s", e.message);
    bool found = strstr(metrics, text) != NULL;
    free(metrics);
    return found;
}
