/* The listening thread: turns notifications into hints. It proves once a minute that it hears;
 * while it does not, nobody is announced as sleeping and domains are polled. */
#include <stdlib.h>

#include "clock.h"
#include "engine.h"

static const double prove_seconds = 60;
static const double longest_wait = 30;

static void listener_set(cb_worker *w, cb_listener *l)
{
    pthread_mutex_lock(&w->listening);
    w->listener = l;
    pthread_mutex_unlock(&w->listening);
}

static bool prove(cb_worker *w, cb_listener *l, cb_error *e)
{
    bool heard = false;

    if (!cb_listener_prove(l, 5000, &heard, e))
        return false;
    if (!heard)
        return cb_fail(e, CB_LOST, "notifications do not arrive on this connection");
    if (!atomic_exchange(&w->hears, true)) {
        emit(w, CB_LEVEL_INFO, "listen.ready", .connection = connection_names[CONNECTION_LISTEN]);
        /* What was sent while nobody listened. */
        for (size_t i = 0; i < w->n_lanes; i++)
            claimer_hint_reply(w->lanes[i]);
    }
    return true;
}

/* The queues listened on, and what is done when something is said there. */
typedef struct {
    const char **queues;
    struct {
        lane *of;
        bool for_reply;
    } * ears;
    size_t n;
} hearing;

static void hearing_done(hearing *h)
{
    free(h->queues);
    free(h->ears);
}

static bool hearing_init(cb_worker *w, hearing *h)
{
    size_t most = 0;

    for (size_t i = 0; i < w->n_lanes; i++)
        most += w->lanes[i]->claiming.sleep.n_queues;
    *h = (hearing){ .queues = calloc(most + 1, sizeof *h->queues),
                    .ears = calloc(most + 1, sizeof *h->ears) };
    for (size_t i = 0; h->queues && h->ears && i < w->n_lanes; i++) {
        lane *l = w->lanes[i];
        for (size_t k = 0; k < l->claiming.sleep.n_queues; k++) {
            h->queues[h->n] = l->claiming.sleep.queues[k];
            h->ears[h->n].of = l;
            h->ears[h->n++].for_reply = k >= l->first_reply;
        }
    }
    return h->queues && h->ears;
}

static bool listen_on(cb_worker *w, cb_listener *l, const hearing *h, cb_error *e)
{
    cb_call *calls = calloc(h->n + 1, sizeof *calls);
    bool any = false, ok = calls != NULL;
    int64_t prove_at = 0;

    while (ok && !atomic_load(&w->ending)) {
        int64_t now = now_ns();
        if (now >= prove_at) {
            prove_at = now + seconds_to_ns(prove_seconds);
            ok = prove(w, l, e);
            continue;
        }
        ok = cb_listener_wait(l, (int)((prove_at - now) / 1000000) + 1, calls, &any, e);
        for (size_t i = 0; ok && any && i < h->n; i++) {
            if (calls[i] == CB_CALLED) {
                metrics_notified(w->metrics);
                claimer_call(h->ears[i].of, h->ears[i].for_reply);
            } else if (calls[i] == CB_CALLED_ANOTHER) {
                claimer_doubt(h->ears[i].of);
            }
        }
    }
    free(calls);
    return ok;
}

static bool wants_to_listen(const cb_worker *w)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        if (w->lanes[i]->claiming.sleep.notify)
            return true;
    }
    return false;
}

/* Listens until that fails, or the worker ends. True when it heard for a while. */
static bool listen_once(cb_worker *w, cb_error *e)
{
    cb_listener *l = NULL;
    bool heard = false;
    hearing h;

    if (hearing_init(w, &h) &&
        cb_listener_open(w->listen_url ? w->listen_url : w->url, w->id, h.queues, h.n, &l, e)) {
        listener_set(w, l);
        metrics_connection_up(w->metrics, CONNECTION_LISTEN, true);
        (void)listen_on(w, l, &h, e);
        heard = atomic_exchange(&w->hears, false);
        listener_set(w, NULL);
        metrics_connection_up(w->metrics, CONNECTION_LISTEN, false);
        cb_listener_free(l);
    }
    hearing_done(&h);
    return heard;
}

void *listen_thread(void *worker)
{
    cb_worker *w = worker;
    double wait = 1;
    bool told = false;

    while (wants_to_listen(w) && !atomic_load(&w->ending)) {
        cb_error e = { 0 };
        if (listen_once(w, &e)) {
            wait = 1;
            told = false;
        }
        if (atomic_load(&w->ending))
            break;
        emit(
            w, told ? CB_LEVEL_DEBUG : CB_LEVEL_WARN, "listen.failed",
            .connection = connection_names[CONNECTION_LISTEN], .error = e.message,
            .retry_seconds = wait,
            .hint =
                "polling until notifications arrive again; behind a pooler in transaction mode set "
                "database.listen-url");
        told = true;
        metrics_reconnect(w->metrics, CONNECTION_LISTEN);
        worker_pause(w, wait);
        wait = 2 * wait < longest_wait ? 2 * wait : longest_wait;
    }
    return NULL;
}
