/* Threads that run routes, and the queue before them. */
#include "api.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "api_watch.h"
#include "fail.h"

enum {
    THREADS = 4,
    MOST_WAITING = 64,
    STACK_BYTES = 512 * 1024
};

typedef struct {
    struct api *api;
    size_t number;
    pthread_t thread;
} member;

struct api {
    api_options options;
    api_table *table;
    const cb_process_type **type_list;
    cb_process_types *types;
    api_watch *watch;
    member members[THREADS];
    size_t n_members;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wanted;
    api_call *first, **last;
    size_t waiting;
    bool stopping, hurried; /* no more are taken; time is short */
};

/* ---- the threads ---- */

/* NULL when stopping and nothing waits any more. */
static api_call *next_call(api *a, bool *refuse)
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

/* Nothing is said on an idle connection unless it ends; one that broke under a set's own statement has no socket. */
static bool has_ended(const cb_db *db)
{
    struct pollfd look = { .fd = cb_db_socket(db), .events = POLLIN | POLLRDHUP };

    return look.fd < 0 || poll(&look, 1, 0) != 0;
}

static bool connect_once(const api *a, cb_db **db)
{
    cb_error e = { 0 };

    if (!*db)
        return cb_db_open(a->options.database_url, db, &e);
    return (!cb_db_is_lost(*db) && !has_ended(*db)) || cb_db_reconnect(*db, &e);
}

static bool is_stopping(api *a)
{
    pthread_mutex_lock(&a->lock);
    bool stopping = a->stopping || a->hurried;
    pthread_mutex_unlock(&a->lock);
    return stopping;
}

/* Of a route that was not asked, or that could not do its work because what it waited for was cancelled. */
static void answer_late(api *a, api_call *call)
{
    if (is_stopping(a))
        cb_http_error(&call->answer, 503, "STOPPING", "this worker stops: ask another");
    else
        cb_http_error(&call->answer, 503, "TIMEOUT",
                      "it waited for longer than http.route-timeout, %g s: ask again",
                      a->options.route_seconds);
}

/* A route that comes to an answer in spite of its lateness is believed. */
static void run_watched(const member *m, api_call *call, cb_db *db, int64_t due_ms)
{
    api *a = m->api;
    cb_error e = { 0 };

    if (!api_watch_begin(a->watch, m->number, db, due_ms, &e)) {
        cb_http_error(&call->answer, 503, "NO_MEMORY", "out of memory");
        return;
    }
    api_call_run(call, db, a->types);
    if (api_watch_end(a->watch, m->number) && call->answer.status >= 500)
        answer_late(a, call);
    cb_db_rollback(db, &e); /* of a route that gave up in a transaction */
}

static void run(const member *m, api_call *call, cb_db **db, bool refuse)
{
    int64_t due_ms = call->came_ms + (int64_t)(m->api->options.route_seconds * 1000);

    if (refuse || api_now_ms() >= due_ms)
        answer_late(m->api, call);
    else if (!connect_once(m->api, db))
        cb_http_error(&call->answer, 503, "NO_DATABASE", "the database does not answer");
    else
        run_watched(m, call, *db, due_ms);
}

static void *work(void *arg)
{
    const member *m = arg;
    OWNED(cb_db) db = NULL;
    api_call *call;
    bool refuse;

    while ((call = next_call(m->api, &refuse))) {
        run(m, call, &db, refuse);
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
        call->came_ms = api_now_ms();
        *a->last = call;
        a->last = &call->next;
        a->waiting++;
        pthread_cond_signal(&a->wanted);
    }
    pthread_mutex_unlock(&a->lock);
    return fits;
}

/* ---- start and end ---- */

static bool open_types(api *a, cb_error *e)
{
    size_t n = 0, used = 0;
    char caller[120];

    for (size_t i = 0; i < a->options.n_modules; i++)
        n += a->options.modules[i]->n_processes;
    a->type_list = calloc(n + 1, sizeof *a->type_list);
    if (!a->type_list)
        return fail_memory(e);
    for (size_t i = 0; i < a->options.n_modules; i++) {
        for (size_t k = 0; k < a->options.modules[i]->n_processes; k++)
            a->type_list[used++] = a->options.modules[i]->processes[k];
    }
    if (!cb_process_types_open(a->type_list, n, a->options.steps, a->options.n_steps,
                               a->options.settings, a->options.n_settings, &a->types, e))
        return false;
    /* Not the instance's own name: what that holds and does not run is released. */
    snprintf(caller, sizeof caller, "%.100s-http", a->options.worker);
    cb_process_types_set_caller(a->types, caller);
    return true;
}

static bool start_threads(api *a, cb_error *e)
{
    pthread_attr_t attributes;
    bool started = true;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (started && a->n_members < THREADS) {
        member *m = &a->members[a->n_members];
        *m = (member){ .api = a, .number = a->n_members };
        started = pthread_create(&m->thread, &attributes, work, m) == 0;
        a->n_members += started;
    }
    pthread_attr_destroy(&attributes);
    return started || cb_fail(e, CB_MEMORY, "no threads for the HTTP routes");
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
    OWNED(api) a = raw;
    if (!api_table_open(options->modules, options->n_modules, &a->table, e) || !open_types(a, e) ||
        !api_watch_open(THREADS, &a->watch, e) || !start_threads(a, e))
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
    api_watch_hurry(a->watch, api_now_ms() + (int64_t)(seconds * 1000));
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
    api_watch_free(a->watch);
    pthread_cond_destroy(&a->wanted);
    pthread_mutex_destroy(&a->lock);
    cb_process_types_free(a->types);
    free(a->type_list);
    api_table_free(a->table);
    free(a);
}
