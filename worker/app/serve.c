/* The life of the program once it is configured: start, work, drain. */
#include <commandbus/version.h>
#include <commandbus/worker.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "assembly.h"
#include "fail.h"
#include "http.h"
#include "http_api.h"
#include "text.h"
#include "thread.h"

enum {
    LOOK_MS = 500, /* how often a stuck handler is looked for */
    /* For what must end by itself once everything is said: threads, and good-bye to the
     * database. */
    LAST_WORDS_MS = 5000,
};

typedef struct {
    const config *config;
    log_sink *log;
    const signals *signals;
    assembly parts;
    cb_worker *worker; /* NULL when there is nothing to do */
    http *http;        /* NULL when http.port is 0 */
} serving;

#define serve_tell(a, lvl, what, ...) \
    log_event(&(cb_event){ .level = (lvl), .name = (what), __VA_ARGS__ }, (a)->log)

/* ---- what HTTP asks ---- */

static bool serve_is_ready(void *arg, char *reason, size_t size)
{
    const serving *a = arg;

    return !a->worker || cb_worker_is_ready(a->worker, reason, size);
}

static bool serve_metrics(void *arg, char **ret, cb_error *e)
{
    const serving *a = arg;

    if (a->worker)
        return cb_worker_metrics(a->worker, ret, e);
    *ret = strdup("");
    return *ret || fail_memory(e);
}

/* ---- start ---- */

/* Routes are served beside whatever else the instance does. */
static bool serve_open_api(const serving *a, api **ret, cb_error *e)
{
    const assembly *parts = &a->parts;

    if (!a->config->http_api)
        return true;
    return api_open(&(api_options){ .modules = parts->loaded,
                                    .n_modules = parts->n_sets,
                                    .database_url = a->config->database_url,
                                    .no_prepared = !a->config->prepared_statements,
                                    .worker = parts->worker.name,
                                    .route_seconds = a->config->http_route_timeout,
                                    .process_types = parts->process_types,
                                    .n_process_types = parts->n_process_types,
                                    .steps = parts->routes,
                                    .n_steps = a->config->n_steps,
                                    .settings = parts->settings,
                                    .n_settings = parts->n_settings },
                    ret, e);
}

static bool serve_open_http(serving *a, cb_error *e)
{
    http_options options = { .bind = a->config->http_bind,
                             .port = (int)a->config->http_port,
                             .token_file = a->config->http_token_file,
                             .responder_token_file = a->config->http_responder_token_file,
                             .source = { serve_is_ready, serve_metrics, a },
                             .splits_api = a->config->http_api_port != 0 &&
                                           a->config->http_api_port != a->config->http_port,
                             .api_port = (int)a->config->http_api_port,
                             .request_seconds = a->config->http_request_timeout,
                             .on_event = log_event,
                             .on_event_arg = a->log };

    return options.port == 0 ||
           (serve_open_api(a, &options.api, e) && http_open(&options, &a->http, e));
}

/* Told after the start and not before: a refusal is then all there is to read. */
static void serve_tell_started(const serving *a)
{
    const cb_worker_options *w = &a->parts.worker;
    char domains[512] = "";
    int64_t slots = 0;

    for (size_t i = 0; i < a->parts.n_sets; i++) {
        const cb_module *module = a->parts.loaded[i];
        serve_tell(a, CB_LEVEL_INFO, "set.loaded", .set = module->name,
                   .count = (int64_t)module->n_handlers, .file = cb_set_file(a->parts.sets[i]));
    }
    for (size_t i = 0; i < w->n_domains; i++) {
        text_append(domains, sizeof domains, "%s%s", *domains ? "," : "", w->domains[i].domain);
        slots += w->no_commands ? 0 : w->domains[i].concurrent_messages;
    }
    serve_tell(a, CB_LEVEL_INFO, "worker.started", .version = cb_version_string(),
               .profile = w->profile, .domain = *domains ? domains : NULL, .slots = slots,
               .address = a->http ? http_address(a->http) : NULL);
    if (a->http && http_api_address(a->http))
        serve_tell(a, CB_LEVEL_INFO, "routes.served", .address = http_api_address(a->http));
    if (!a->worker)
        serve_tell(a, CB_LEVEL_WARN, "worker.idle",
                   .hint = "every feature that needs a domain is off");
}

static bool serve_start(serving *a, cb_error *e)
{
    if (!assembly_init(&a->parts, a->config, e))
        return false;
    a->parts.worker.on_event = log_event;
    a->parts.worker.on_event_arg = a->log;
    if (a->parts.worker.n_domains > 0 && !cb_worker_open(&a->parts.worker, &a->worker, e))
        return false;
    if (!serve_open_http(a, e) || (a->worker && !cb_worker_start(a->worker, e)))
        return false;
    serve_tell_started(a);
    return true;
}

/* Until a signal says to end, or a handler is stuck. */
static void serve_work(const serving *a)
{
    for (;;) {
        int signal = signals_wait(a->signals, LOOK_MS / 1000.0);
        if (signal)
            serve_tell(a, CB_LEVEL_INFO, "signal.received", .signal = signal);
        if (signal || (a->worker && cb_worker_is_broken(a->worker)))
            return;
    }
}

/* ---- drain, in a time that is known ----
 *
 * Three threads: the caller stops the worker and then the routes, one hears the second signal,
 * and one sees to it that the other two come to an end. */

typedef struct {
    const serving *app;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int64_t until_ms;
    bool is_over; /* everything has stopped */
} draining;

/* A second signal stops what runs now. */
static void *drain_hear_signal(void *arg)
{
    draining *d = arg;
    int signal = signals_wait(d->app->signals, -1);

    pthread_mutex_lock(&d->lock);
    bool is_over = d->is_over;
    if (!is_over) {
        d->until_ms = monotonic_ms() + LAST_WORDS_MS;
        pthread_cond_signal(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    if (is_over)
        return NULL;
    serve_tell(d->app, CB_LEVEL_WARN, "signal.received", .signal = signal,
               .hint = "the second one: what runs is left behind and redelivered");
    if (d->app->worker)
        cb_worker_stop_now(d->app->worker);
    http_hurry(d->app->http, 0); /* last: it may have to wait for a server that does not answer */
    return NULL;
}

/* When even that does not end, because the database hangs without a word and so holds whoever
 * asks it, or a route does not return, the program ends here. */
static void *drain_see_to_the_end(void *arg)
{
    draining *d = arg;
    bool has_time = true;

    pthread_mutex_lock(&d->lock);
    while (!d->is_over && has_time)
        has_time = condition_wait(&d->changed, &d->lock, d->until_ms);
    if (!d->is_over) {
        serve_tell(d->app, CB_LEVEL_ERROR, "worker.abandoned",
                   .hint = "the database does not answer, or a route does not return: what was "
                           "held is redelivered");
        fflush(NULL);
        _exit(ENDED_UNDRAINED);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Routes have run beside the drain of the worker: what is left of its time is theirs. */
static bool drain_stop(const serving *a, int64_t until_ms)
{
    bool drained = !a->worker || cb_worker_stop(a->worker, a->config->shutdown_timeout);
    int64_t left_ms = until_ms - monotonic_ms();

    http_stop(a->http, drained && left_ms > 0 ? (double)left_ms / 1000 : 0);
    return drained;
}

/* Stops the worker and the routes within the shutdown timeout; false: some of what ran is left
 * behind. */
static bool serve_drain(const serving *a)
{
    int64_t until_ms = monotonic_ms() + (int64_t)(a->config->shutdown_timeout * 1000);
    draining d = { .app = a, .until_ms = until_ms + LAST_WORDS_MS };
    pthread_t hears, sees;

    condition_init(&d.changed);
    pthread_mutex_init(&d.lock, NULL);
    bool is_heard = pthread_create(&hears, NULL, drain_hear_signal, &d) == 0;
    bool is_seen = pthread_create(&sees, NULL, drain_see_to_the_end, &d) == 0;
    bool drained = drain_stop(a, until_ms);

    pthread_mutex_lock(&d.lock);
    d.is_over = true;
    pthread_cond_signal(&d.changed);
    pthread_mutex_unlock(&d.lock);
    if (is_heard) {
        /* Wakes it; it has ended already when there was a second signal. */
        pthread_kill(hears, SIGTERM);
        pthread_join(hears, NULL);
    }
    if (is_seen)
        pthread_join(sees, NULL);
    pthread_cond_destroy(&d.changed);
    pthread_mutex_destroy(&d.lock);
    return drained;
}

/* ---- all of it ---- */

static void serve_done(serving *a)
{
    http_free(a->http);
    cb_worker_free(a->worker);
    assembly_done(&a->parts);
}

ended serve(const config *c, log_sink *log, const signals *s)
{
    serving a = { .config = c, .log = log, .signals = s };
    cb_error e = { 0 };

    if (!serve_start(&a, &e)) {
        serve_done(&a);
        return refuse(&e);
    }
    serve_work(&a);
    bool drained = serve_drain(&a);
    bool stuck = a.worker && cb_worker_is_broken(a.worker);
    ended how = stuck ? ENDED_STUCK : drained ? ENDED_CLEAN : ENDED_UNDRAINED;
    if (!drained) {
        fflush(NULL);
        _exit(how);
    }
    serve_done(&a);
    return how;
}
