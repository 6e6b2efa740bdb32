/* Threads that run routes, the queue before them, and one more that watches them. */
#include "http_api.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fail.h"
#include "thread.h"

enum {
    THREADS = 4,
    MOST_WAITING = 64,
    STACK_BYTES = 512 * 1024,
    WATCH_STACK_BYTES = 256 * 1024,
    AGAIN_MS = 1000 /* a route may go on with another statement */
};

/* What one of the threads runs. */
typedef struct {
    cb_canceler *canceler; /* NULL: nothing runs */
    int64_t due_ms;
    bool is_over; /* its time */
} route_turn;

typedef struct {
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    route_turn turns[THREADS];
    int64_t hurry_ms;
    bool stopping;
} route_watch;

typedef struct {
    struct api *api;
    size_t number;
    pthread_t thread;
} api_member;

struct api {
    api_options options;
    api_table *table;
    cb_process_types *types;
    route_watch watch;
    api_member members[THREADS];
    size_t n_members;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wanted;
    api_call *first, **last;
    size_t waiting;
    bool stopping, hurried; /* no more are taken; time is short */
};

/* ---- the watch ----
 *
 * Routes that wait for the database longer than they may: what runs on their connection is
 * cancelled, so that a lock which somebody holds costs a request, and neither a thread nor the
 * end of the worker. One thread sleeps until the first route is due. It cancels under the lock:
 * when a route's turn has ended, nothing is on its way that could hit the next one. */

/* The earlier of the two, INT64_MAX for none. */
static int64_t watch_due(const route_watch *w, const route_turn *t)
{
    if (!t->canceler)
        return INT64_MAX;
    return t->is_over || t->due_ms < w->hurry_ms ? t->due_ms : w->hurry_ms;
}

/* Cancels what is due. Gives when to look again. */
static int64_t watch_cancel_due(route_watch *w)
{
    int64_t now = monotonic_ms(), next = INT64_MAX;

    for (size_t i = 0; i < THREADS; i++) {
        route_turn *t = &w->turns[i];
        if (watch_due(w, t) <= now) {
            cb_canceler_send(t->canceler, NULL); /* not heard: again in a second */
            t->is_over = true;
            t->due_ms = monotonic_ms() + AGAIN_MS;
        }
        if (watch_due(w, t) < next)
            next = watch_due(w, t);
    }
    return next;
}

static void *watch_run(void *arg)
{
    route_watch *w = arg;

    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        int64_t next_ms = watch_cancel_due(w);
        condition_wait(&w->changed, &w->lock, next_ms);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* From `due_ms` on every statement on db is cancelled, a second apart, until the end. */
static bool watch_begin(route_watch *w, size_t thread, cb_db *db, int64_t due_ms, cb_error *e)
{
    cb_canceler *canceler = NULL;

    if (!cb_canceler_open(db, &canceler, e))
        return false;
    pthread_mutex_lock(&w->lock);
    w->turns[thread] = (route_turn){ canceler, due_ms, false };
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return true;
}

/* Whether there was something to cancel, as far as one can tell: its time was over. From here on
 * nothing is cancelled. */
static bool watch_end(route_watch *w, size_t thread)
{
    pthread_mutex_lock(&w->lock);
    route_turn ended = w->turns[thread];
    w->turns[thread] = (route_turn){ 0 };
    pthread_mutex_unlock(&w->lock);
    cb_canceler_free(ended.canceler);
    return ended.is_over;
}

/* Whatever runs now or later is due then, unless it is earlier. */
static void watch_hurry(route_watch *w, int64_t due_ms)
{
    pthread_mutex_lock(&w->lock);
    if (due_ms < w->hurry_ms)
        w->hurry_ms = due_ms;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static bool watch_start(route_watch *w, cb_error *e)
{
    w->is_started = thread_start(&w->thread, WATCH_STACK_BYTES, watch_run, w);
    return w->is_started || cb_fail(e, CB_MEMORY, "no thread to watch the HTTP routes");
}

/* Nothing is watched any more by then. */
static void watch_stop(route_watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (w->is_started)
        pthread_join(w->thread, NULL);
}

/* ---- the threads ---- */

/* NULL when stopping and nothing waits any more. */
static api_call *api_next_call(api *a, bool *refuse)
{
    pthread_mutex_lock(&a->lock);
    while (!a->first && !a->stopping)
        pthread_cond_wait(&a->wanted, &a->lock);
    api_call *call = a->first;
    if (call) {
        a->first = call->next;
        if (!a->first)
            a->last = &a->first;
        a->waiting--;
    }
    *refuse = a->stopping;
    pthread_mutex_unlock(&a->lock);
    return call;
}

/* Nothing is said on an idle connection unless it ends; one that broke under a set's own
 * statement has no socket. */
static bool api_has_ended(const cb_db *db)
{
    struct pollfd look = { .fd = cb_db_socket(db), .events = POLLIN | POLLRDHUP };

    return look.fd < 0 || poll(&look, 1, 0) != 0;
}

static bool api_connect(const api *a, cb_db **db)
{
    cb_error e = { 0 };

    if (!*db) {
        if (!cb_db_open(a->options.database_url, db, &e))
            return false;
        cb_db_set_prepared(*db, !a->options.no_prepared);
        return true;
    }
    return (!cb_db_is_lost(*db) && !api_has_ended(*db)) || cb_db_reconnect(*db, &e);
}

static bool api_is_stopping(api *a)
{
    pthread_mutex_lock(&a->lock);
    bool stopping = a->stopping || a->hurried;
    pthread_mutex_unlock(&a->lock);
    return stopping;
}

/* Of a route that was not asked, or that could not do its work because what it waited for was
 * cancelled. */
static void api_answer_late(api *a, api_call *call)
{
    if (api_is_stopping(a))
        cb_http_error(&call->answer, 503, "STOPPING", "this worker stops: ask another");
    else
        cb_http_error(&call->answer, 503, "TIMEOUT",
                      "it waited for longer than http.route-timeout, %g s: ask again",
                      a->options.route_seconds);
}

/* A route that comes to an answer in spite of its lateness is believed. */
static void api_run_watched(const api_member *m, api_call *call, cb_db *db, int64_t due_ms)
{
    api *a = m->api;
    cb_error e = { 0 };

    if (!watch_begin(&a->watch, m->number, db, due_ms, &e)) {
        cb_http_error(&call->answer, 503, "NO_MEMORY", "out of memory");
        return;
    }
    api_call_run(call, db, a->types);
    if (watch_end(&a->watch, m->number) && call->answer.status >= 500)
        api_answer_late(a, call);
    cb_db_rollback(db, &e); /* of a route that gave up in a transaction */
}

static void api_run(const api_member *m, api_call *call, cb_db **db, bool refuse)
{
    int64_t due_ms = call->came_ms + (int64_t)(m->api->options.route_seconds * 1000);

    if (refuse || monotonic_ms() >= due_ms)
        api_answer_late(m->api, call);
    else if (!api_connect(m->api, db))
        cb_http_error(&call->answer, 503, "NO_DATABASE", "the database does not answer");
    else
        api_run_watched(m, call, *db, due_ms);
}

static void *api_work(void *arg)
{
    const api_member *m = arg;
    OWNED(cb_db) db = NULL;
    api_call *call;
    bool refuse;

    while ((call = api_next_call(m->api, &refuse))) {
        api_run(m, call, &db, refuse);
        call->answered = true;
        call->resume(call->connection); /* from here on the call is not ours */
    }
    return NULL;
}

bool api_submit(api *a, api_call *call)
{
    pthread_mutex_lock(&a->lock);
    bool fits = a->waiting < MOST_WAITING && !a->stopping;
    if (fits) {
        call->next = NULL;
        call->came_ms = monotonic_ms();
        *a->last = call;
        a->last = &call->next;
        a->waiting++;
        pthread_cond_signal(&a->wanted);
    }
    pthread_mutex_unlock(&a->lock);
    return fits;
}

/* ---- start and end ---- */

static bool api_open_types(api *a, cb_error *e)
{
    const api_options *o = &a->options;
    char caller[120];

    if (!cb_process_types_open(o->process_types, o->n_process_types, o->steps, o->n_steps,
                               o->settings, o->n_settings, &a->types, e))
        return false;
    /* Not the instance's own name: what that holds and does not run is released. */
    snprintf(caller, sizeof caller, "%.100s-http", o->worker);
    cb_process_types_set_caller(a->types, caller);
    return true;
}

static bool api_start_threads(api *a, cb_error *e)
{
    while (a->n_members < THREADS) {
        api_member *m = &a->members[a->n_members];
        *m = (api_member){ .api = a, .number = a->n_members };
        if (!thread_start(&m->thread, STACK_BYTES, api_work, m))
            return cb_fail(e, CB_MEMORY, "no threads for the HTTP routes");
        a->n_members++;
    }
    return true;
}

bool api_open(const api_options *options, api **ret, cb_error *e)
{
    api *raw = calloc(1, sizeof *raw);

    if (!raw)
        return fail_memory(e);
    raw->options = *options;
    raw->last = &raw->first;
    pthread_mutex_init(&raw->lock, NULL);
    pthread_cond_init(&raw->wanted, NULL);
    raw->watch.hurry_ms = INT64_MAX;
    pthread_mutex_init(&raw->watch.lock, NULL);
    condition_init(&raw->watch.changed);
    OWNED(api) a = raw;
    if (!api_table_open(options->modules, options->n_modules, &a->table, e) ||
        !api_open_types(a, e) || !watch_start(&a->watch, e) || !api_start_threads(a, e))
        return false;
    *ret = api_take(&a);
    return true;
}

const api_table *api_routes(const api *a)
{
    return a->table;
}

void api_hurry(api *a, double seconds)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->hurried = true;
    pthread_mutex_unlock(&a->lock);
    watch_hurry(&a->watch, monotonic_ms() + (int64_t)(seconds * 1000));
}

void api_stop(api *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stopping = true;
    pthread_cond_broadcast(&a->wanted);
    pthread_mutex_unlock(&a->lock);
    while (a->n_members > 0)
        pthread_join(a->members[--a->n_members].thread, NULL);
}

void api_free(api *a)
{
    if (!a)
        return;
    api_stop(a);
    watch_stop(&a->watch);
    pthread_cond_destroy(&a->watch.changed);
    pthread_mutex_destroy(&a->watch.lock);
    pthread_cond_destroy(&a->wanted);
    pthread_mutex_destroy(&a->lock);
    cb_process_types_free(a->types);
    api_table_free(a->table);
    free(a);
}
