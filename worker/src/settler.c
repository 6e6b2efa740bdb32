/* The settling thread of either kind, and the queue that it reads. */
#include "settler.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "engine.h"

/* ---- the queue ---- */

void outcomes_init(outcomes *q, size_t (*bytes)(const outcome *o))
{
    q->bytes = bytes;
    pthread_mutex_init(&q->mutex, NULL);
    waiting_init(&q->filled);
}

void outcomes_done(outcomes *q)
{
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->mutex);
}

void outcomes_put(outcomes *q, outcome *o)
{
    o->next = NULL;
    pthread_mutex_lock(&q->mutex);
    if (q->last)
        q->last->next = o;
    else
        q->first = o;
    q->last = o;
    q->n++;
    if (q->waiting && q->n >= q->enough)
        pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->mutex);
}

void outcomes_end(outcomes *q)
{
    pthread_mutex_lock(&q->mutex);
    q->ending = true;
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->mutex);
}

size_t outcomes_count(outcomes *q)
{
    pthread_mutex_lock(&q->mutex);
    size_t n = q->n;
    pthread_mutex_unlock(&q->mutex);
    return n;
}

/* With the mutex held. */
static bool wait_for_one(outcomes *q)
{
    while (!q->first && !q->ending) {
        q->waiting = true;
        waiting_for(&q->filled, &q->mutex, -1);
        q->waiting = false;
    }
    return q->first != NULL;
}

void outcomes_gather(outcomes *q, size_t enough, int64_t ns)
{
    pthread_mutex_lock(&q->mutex);
    if (q->n < enough && !q->ending) {
        q->waiting = true;
        q->enough = enough;
        waiting_for(&q->filled, &q->mutex, ns);
        q->enough = 0;
        q->waiting = false;
    }
    pthread_mutex_unlock(&q->mutex);
}

bool outcomes_wait(outcomes *q)
{
    pthread_mutex_lock(&q->mutex);
    bool any = wait_for_one(q);
    pthread_mutex_unlock(&q->mutex);
    return any;
}

size_t outcomes_take(outcomes *q, outcome **to, size_t max, size_t max_bytes)
{
    size_t n = 0, bytes = 0;

    pthread_mutex_lock(&q->mutex);
    (void)wait_for_one(q);
    while (q->first && n < max) {
        bytes += q->bytes(q->first);
        if (n > 0 && bytes > max_bytes)
            break;
        to[n++] = q->first;
        q->first = q->first->next;
    }
    if (!q->first)
        q->last = NULL;
    q->n -= n;
    pthread_mutex_unlock(&q->mutex);
    return n;
}

/* ---- settling ---- */

enum {
    FLUSH_ITEMS = 1000,
    FLUSH_BYTES = 8 * 1024 * 1024,
    GATHER_MOMENTS = 5,
};

/* No verdict: the database does not take the outcome in any form. */
static const cb_verdict refused_verdict = (cb_verdict)(CB_STALE + 1);

/* What one flush writes. */
typedef struct {
    outcome **batch;
    char *items;
    size_t n;
} flushing;

/* While work trickles, flushes take so much of the time at most: see CLAIM_PACE. */
enum {
    FLUSH_PACE = 3
};
static const int64_t longest_flush_pace_ns = 24000000;

void settler_init(settler *s, cb_worker *w, const lane_ops *ops)
{
    s->worker = w;
    s->ops = ops;
    outcomes_init(&s->waiting, ops->bytes);
    outcomes_init(&s->refused, ops->bytes);
    trouble_init(&s->trouble, w, ops->settle_connection, NULL, true);
}

void settler_done(settler *s)
{
    outcomes_done(&s->waiting);
    outcomes_done(&s->refused);
}

void settler_put(outcome *o)
{
    const lane *l = o->job->lane;

    outcomes_put(&l->worker->settling[l->ops->kind].waiting, o);
}

void settler_bring_again(settler *s)
{
    outcome *o = NULL;

    if (trouble_until(&s->trouble) > 0 && !atomic_load(&s->worker->stopping))
        return;
    for (size_t n = outcomes_count(&s->refused); n > 0; n--) {
        outcomes_take(&s->refused, &o, 1, 0);
        settler_put(o);
    }
}

static db_connection *connection_of(const settler *s)
{
    return &s->worker->connections[s->ops->settle_connection];
}

static char *item_at(const settler *s, const flushing *f, size_t i)
{
    return f->items + i * s->ops->item_size;
}

static cb_verdict *verdict_of(const settler *s, char *item)
{
    return (cb_verdict *)(void *)(item + s->ops->verdict_at);
}

/* The same call may succeed later. A statement that was cancelled is none of those: it took too
 * long for somebody's statement_timeout, and fewer items take less. */
static bool is_passing(const cb_error *e)
{
    return e->code == CB_LOST || (e->code == CB_AGAIN && strcmp(e->sqlstate, "57014") != 0);
}

/* One attempt at n items. */
static bool settler_write(settler *s, char *items, size_t n, cb_error *e)
{
    cb_worker *w = s->worker;
    db_connection *conn = connection_of(s);
    size_t refused = 0;
    int64_t from = now_ns();

    if (!s->ops->settle(w, conn->db, items, n, &refused, e))
        return false;
    connection_worked(conn);
    int64_t took = now_ns() - from;
    s->typical_ns += (took - s->typical_ns) / 4;
    metrics_settle(w->metrics, n, took / 1000);
    metrics_refused(w->metrics, refused);
    return true;
}

/* A right, or a function: nobody else's outcomes are taken either. */
static bool concerns_all(const cb_error *e)
{
    return e->code == CB_DENIED || e->code == CB_SCHEMA;
}

/* The database refuses the whole: a domain that is gone, a right that was taken away. Whoever can
 * be settled alone is; the others are kept, for their handlers have done what they did. */
static bool settler_write_each(settler *s, const flushing *f, cb_error *e)
{
    cb_error refusal = { 0 };

    for (size_t i = 0; i < f->n; i++) {
        if (settler_write(s, item_at(s, f, i), 1, e))
            continue;
        if (is_passing(e))
            return false;
        *verdict_of(s, item_at(s, f, i)) = refused_verdict;
        if (f->batch[i]->tries++ % 60 == 0) /* brought again every second, told once a minute */
            s->ops->tell_refused(f->batch[i], e);
        if (concerns_all(e))
            refusal = *e;
    }
    if (refusal.code != CB_OK)
        trouble_add(&s->trouble, &refusal, "settle", NULL);
    return true;
}

/* Sends the batch until it has verdicts, whatever happens to the connection. False: the worker
 * ends. */
static bool settler_write_all(settler *s, const flushing *f)
{
    db_connection *conn = connection_of(s);
    cb_error e = { 0 };

    while (connection_ready(conn, NULL)) {
        if (settler_write(s, f->items, f->n, &e) ||
            (!is_passing(&e) && settler_write_each(s, f, &e)))
            return true;
        connection_failed(conn, &e, "settle");
        if (atomic_load(&s->worker->ending))
            break;
    }
    return false;
}

/* Somebody may wait for it, and at the end in vain. */
static void settler_bring_later(settler *s, outcomes *to, outcome *o)
{
    if (atomic_load(&s->worker->ending) && s->ops->left)
        s->ops->left(o);
    else
        outcomes_put(to, o);
}

static size_t settler_leave(settler *s, const flushing *f)
{
    for (size_t i = 0; s->ops->left && i < f->n; i++)
        s->ops->left(f->batch[i]);
    return f->n;
}

/* Returns how many are to be brought again. */
static size_t settler_flush(settler *s, const flushing *f)
{
    cb_worker *w = s->worker;
    size_t busy = 0, refused = 0, freed = 0;

    for (size_t i = 0; i < f->n; i++)
        memcpy(item_at(s, f, i), (char *)f->batch[i] + s->ops->item_at, s->ops->item_size);
    if (!settler_write_all(s, f))
        return settler_leave(s, f);
    for (size_t i = 0; i < f->n; i++) {
        outcome *o = f->batch[i];
        cb_verdict verdict = *verdict_of(s, item_at(s, f, i));
        *verdict_of(s, (char *)o + s->ops->item_at) = verdict;
        if (verdict == refused_verdict) {
            settler_bring_later(s, &s->refused, o);
            refused++;
        } else if (verdict == CB_BUSY) {
            settler_bring_later(s, &s->waiting, o);
            busy++;
        } else {
            freed += s->ops->settled(o);
        }
    }
    if (refused == 0 && outcomes_count(&s->refused) == 0)
        trouble_end(&s->trouble);
    if (freed > 0)
        claimer_freed(&w->claims[s->ops->kind]);
    if (atomic_load(&w->stopping))
        worker_changed(w);
    /* Somebody holds those rows: not for long, and nobody is helped by asking in a circle. */
    if (busy == f->n)
        worker_pause(w, 0.005);
    return busy;
}

static bool settler_is_bursting(const settler *s)
{
    for (size_t i = 0; s->ops->is_bursting && i < s->worker->n_domains; i++) {
        if (s->ops->is_bursting(worker_lane(s->worker, s->ops->kind, i)))
            return true;
    }
    return false;
}

/* A flush of one now would keep the others waiting for its commit. */
static void settler_gather(const settler *s)
{
    static const struct timespec moment = { .tv_nsec = 20000 };

    for (int i = 0; i < GATHER_MOMENTS && settler_is_bursting(s); i++)
        nanosleep(&moment, NULL);
}

/* How many of this kind could still come to something while none of its lanes is full; 0: nobody
 * is to be waited for. */
static size_t settler_expects(const settler *s)
{
    size_t in_flight = 0;
    bool trickles = false;

    for (size_t i = 0; i < s->worker->n_domains; i++) {
        const lane *l = worker_lane(s->worker, s->ops->kind, i);
        size_t n = atomic_load(&l->in_flight);
        if (n > 0 && atomic_load(&l->claiming.sleep.hot))
            return 0;
        in_flight += n;
        trickles |= lane_trickles(l);
    }
    return trickles && !atomic_load(&s->worker->stopping) ? in_flight : 0;
}

/* Not for longer than all that is in flight has come to something. */
static void settler_pace(settler *s)
{
    int64_t pace = FLUSH_PACE * s->typical_ns;
    int64_t left =
        s->flushed_at - now_ns() + (pace < longest_flush_pace_ns ? pace : longest_flush_pace_ns);
    size_t expected = left > 0 ? settler_expects(s) : 0;

    if (expected > 0)
        outcomes_gather(&s->waiting, expected, left);
    s->flushed_at = now_ns();
}

void *settler_thread(void *arg)
{
    settler *s = arg;
    flushing f = { .batch = calloc(FLUSH_ITEMS, sizeof *f.batch),
                   .items = calloc(FLUSH_ITEMS, s->ops->item_size) };

    while (f.batch && f.items && outcomes_wait(&s->waiting)) {
        settler_gather(s);
        settler_pace(s);
        f.n = outcomes_take(&s->waiting, f.batch, FLUSH_ITEMS, FLUSH_BYTES);
        /* At the end once more for what the last handlers came to, but only once. */
        if (settler_flush(s, &f) > 0 && atomic_load(&s->worker->ending) && !s->ops->left)
            break;
    }
    free(f.items);
    free(f.batch);
    return NULL;
}
