/* Start, work, drain. */
#include "serve.h"

#include <commandbus/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "assembly.h"
#include "drain.h"
#include "fail.h"
#include "http.h"
#include "text.h"

static const double look_seconds = 0.5; /* how often a stuck handler is looked for */

typedef struct {
    const config *config;
    log_sink *log;
    const signals *signals;
    assembly parts;
    cb_worker *worker; /* NULL when there is nothing to do */
    http *http;        /* NULL when http.port is 0 */
} app;

#define tell(a, lvl, what, ...) \
    log_event(&(cb_event){ .level = (lvl), .name = (what), __VA_ARGS__ }, (a)->log)

/* ---- what HTTP asks ---- */

static bool is_ready(void *arg, char *reason, size_t size)
{
    const app *a = arg;

    return !a->worker || cb_worker_is_ready(a->worker, reason, size);
}

static bool metrics(void *arg, char **ret, cb_error *e)
{
    const app *a = arg;

    if (a->worker)
        return cb_worker_metrics(a->worker, ret, e);
    *ret = strdup("");
    return *ret || fail_memory(e);
}

/* ---- start ---- */

/* Routes are served beside whatever else the instance does. */
static bool open_api(app *a, api **ret, cb_error *e)
{
    assembly *parts = &a->parts;

    if (!a->config->http_api)
        return true;
    for (size_t i = 0; i < parts->n_sets; i++)
        parts->loaded[i] = cb_set_module(parts->sets[i]);
    return api_open(&(api_options){ .modules = parts->loaded,
                                    .n_modules = parts->n_sets,
                                    .database_url = a->config->database_url,
                                    .worker = parts->worker.name,
                                    .route_seconds = a->config->http_route_timeout,
                                    .steps = parts->routes,
                                    .n_steps = a->config->n_steps,
                                    .settings = parts->settings,
                                    .n_settings = parts->n_settings },
                    ret, e);
}

static bool open_http(app *a, cb_error *e)
{
    http_options options = { .bind = a->config->http_bind,
                             .port = (int)a->config->http_port,
                             .token_file = a->config->http_token_file,
                             .responder_token_file = a->config->http_responder_token_file,
                             .source = { is_ready, metrics, a },
                             .splits_api = a->config->http_api_port != 0 &&
                                           a->config->http_api_port != a->config->http_port,
                             .api_port = (int)a->config->http_api_port,
                             .request_seconds = a->config->http_request_timeout,
                             .on_event = log_event,
                             .on_event_arg = a->log };

    return options.port == 0 || (open_api(a, &options.api, e) && http_open(&options, &a->http, e));
}

/* Told after the start and not before: a refusal is then all there is to read. */
static void tell_sets(const app *a)
{
    for (size_t i = 0; i < a->parts.n_sets; i++) {
        const cb_module *module = cb_set_module(a->parts.sets[i]);
        tell(a, CB_LEVEL_INFO, "set.loaded", .set = module->name,
             .count = (int64_t)module->n_handlers, .file = cb_set_file(a->parts.sets[i]));
    }
}

static void tell_started(const app *a)
{
    const cb_worker_options *w = &a->parts.worker;
    char domains[512] = "";
    int64_t slots = 0;

    for (size_t i = 0; i < w->n_domains; i++) {
        text_append(domains, sizeof domains, "%s%s", *domains ? "," : "", w->domains[i].domain);
        slots += w->no_commands ? 0 : w->domains[i].concurrent_messages;
    }
    tell(a, CB_LEVEL_INFO, "worker.started", .version = cb_version_string(), .profile = w->profile,
         .domain = *domains ? domains : NULL, .slots = slots,
         .address = a->http ? http_address(a->http) : NULL);
    if (a->http && http_api_address(a->http))
        tell(a, CB_LEVEL_INFO, "routes.served", .address = http_api_address(a->http));
    if (!a->worker)
        tell(a, CB_LEVEL_WARN, "worker.idle", .hint = "every feature that needs a domain is off");
}

static bool start(app *a, cb_error *e)
{
    if (!assembly_init(&a->parts, a->config, e))
        return false;
    a->parts.worker.on_event = log_event;
    a->parts.worker.on_event_arg = a->log;
    if (a->parts.worker.n_domains > 0 && !cb_worker_open(&a->parts.worker, &a->worker, e))
        return false;
    if (!open_http(a, e) || (a->worker && !cb_worker_start(a->worker, e)))
        return false;
    tell_sets(a);
    tell_started(a);
    return true;
}

/* ---- work ---- */

/* Until a signal says to end, or a handler is stuck. */
static void work(const app *a)
{
    for (;;) {
        int signal = signals_wait(a->signals, look_seconds);
        if (signal)
            tell(a, CB_LEVEL_INFO, "signal.received", .signal = signal);
        if (signal || (a->worker && cb_worker_is_broken(a->worker)))
            return;
    }
}

/* ---- end ---- */

static void done(app *a)
{
    http_free(a->http);
    cb_worker_free(a->worker);
    assembly_done(&a->parts);
}

ended serve(const config *c, log_sink *log, const signals *s)
{
    app a = { .config = c, .log = log, .signals = s };
    cb_error e = { 0 };

    if (!start(&a, &e)) {
        done(&a);
        return refuse(&e);
    }
    work(&a);
    bool drained = drain(&(drain_what){ a.worker, a.http }, c->shutdown_timeout, s, log);
    bool stuck = a.worker && cb_worker_is_broken(a.worker);
    ended how = stuck ? ENDED_STUCK : drained ? ENDED_CLEAN : ENDED_UNDRAINED;
    if (!drained) {
        fflush(NULL);
        _exit(how);
    }
    done(&a);
    return how;
}
