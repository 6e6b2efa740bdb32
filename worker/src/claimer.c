/* The claiming thread of either kind. When a place is empty it goes to sleep as sleep.c says. */
#include "claimer.h"

#include <stdlib.h>

#include "clock.h"
#include "engine.h"

/* However much is due, replies of other instances, who may notify nobody, are looked for so often. */
static const int64_t longest_without_replies_ns = 20000000;

bool claimer_init(claimer *c, cb_worker *w, const claim_kind *kind, link_name link, size_t n,
                  cb_error *e)
{
    c->worker = w;
    c->kind = kind;
    c->link = link;
    pthread_mutex_init(&c->mutex, NULL);
    waiting_init(&c->changed);
    c->places = calloc(n + 1, sizeof *c->places);
    if (!c->places)
        return cb_fail(e, CB_MEMORY, "no memory for %zu domains", n);
    for (c->n = 0; c->n < n; c->n++) {
        c->places[c->n].domain = c->n;
        trouble_init(&c->places[c->n].refused, w, link, w->domains[c->n].name, true);
    }
    return true;
}

void claimer_done(claimer *c)
{
    if (!c->kind) /* never opened */
        return;
    free(c->places);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
}

void claimer_reset(claimer *c)
{
    c->sweep_wanted = false;
    c->sweep_at = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->places[i].hinted = c->places[i].replied = false;
        c->places[i].look_by = 0;
        sleep_reset(&c->places[i].sleep);
    }
}

/* With the mutex held. */
static void wake(claimer *c)
{
    if (c->waiting)
        pthread_cond_signal(&c->changed);
}

void claimer_hint(claimer *c, size_t domain)
{
    pthread_mutex_lock(&c->mutex);
    c->places[domain].hinted = true;
    wake(c);
    pthread_mutex_unlock(&c->mutex);
}

void claimer_hint_reply(claimer *c, size_t domain)
{
    pthread_mutex_lock(&c->mutex);
    c->places[domain].hinted = c->places[domain].replied = true;
    wake(c);
    pthread_mutex_unlock(&c->mutex);
}

void claimer_look_within(claimer *c, size_t domain, double seconds)
{
    int64_t at = now_ns() + seconds_to_ns(seconds);
    claim_place *p = &c->places[domain];

    pthread_mutex_lock(&c->mutex);
    if (p->look_by == 0 || at < p->look_by) {
        p->look_by = at;
        wake(c);
    }
    pthread_mutex_unlock(&c->mutex);
}

void claimer_freed(claimer *c)
{
    pthread_mutex_lock(&c->mutex);
    wake(c);
    pthread_mutex_unlock(&c->mutex);
}

void claimer_sweep(claimer *c)
{
    pthread_mutex_lock(&c->mutex);
    c->sweep_wanted = true;
    wake(c);
    pthread_mutex_unlock(&c->mutex);
}

/* True when there is reason to claim now; else *at is moved to when there will be at the latest. */
static bool is_due(claimer *c, claim_place *p, int64_t now, int64_t *at)
{
    bool free = c->kind->free_places(c->worker, p) > 0;
    int64_t next = p->sleep.poll_at;

    if (!free && !p->always) {
        /* Whoever frees a place wakes us; the memory of a claim that a renewal held on to does not. */
        if (now + seconds_to_ns(1) < *at)
            *at = now + seconds_to_ns(1);
        return false;
    }
    int64_t refused_until = trouble_until(&p->refused);
    if (refused_until > 0) { /* whoever hints: it would only be refused again */
        *at = refused_until < *at ? refused_until : *at;
        return false;
    }
    if (p->look_by && p->look_by < next)
        next = p->look_by;
    if (p->hinted || (p->sleep.hot && free) || now >= next)
        return true;
    if (next < *at)
        *at = next;
    return false;
}

/* With the mutex held. */
static claim_place *find_due(claimer *c, int64_t now, int64_t *until)
{
    for (size_t i = 0; i < c->n && !atomic_load(&c->worker->stopping); i++) {
        claim_place *p = &c->places[(c->turn + i) % c->n];
        if (is_due(c, p, now, until)) {
            p->replies = p->replied || now >= p->sleep.poll_at ||
                         now - p->replies_at > longest_without_replies_ns;
            if (p->replies)
                p->replies_at = now;
            p->hinted = p->replied = false;
            p->look_by = 0;
            c->turn = (c->turn + i + 1) % c->n;
            return p;
        }
    }
    return NULL;
}

/* The next place to claim for, when there is one. NULL after waiting, or when it is time to sweep. */
static claim_place *next_place(claimer *c)
{
    int64_t now = now_ns(), until = INT64_MAX;

    pthread_mutex_lock(&c->mutex);
    /* Said before `stopping` is looked at: whoever stops sees one or the other. */
    atomic_store(&c->claiming, true);
    claim_place *found = find_due(c, now, &until);
    atomic_store(&c->claiming, found != NULL);
    if (!found && !c->sweep_wanted && !atomic_load(&c->worker->ending)) {
        if (c->sweep_at && c->sweep_at < until)
            until = c->sweep_at;
        c->waiting = true;
        waiting_for(&c->changed, &c->mutex,
                    until == INT64_MAX ? -1
                    : until > now      ? until - now
                                       : 0);
        c->waiting = false;
    }
    pthread_mutex_unlock(&c->mutex);
    return found;
}

void claimer_failed(claimer *c, claim_place *p, const cb_error *e, const char *doing)
{
    db_link *link = &c->worker->links[c->link];

    if (is_refusal(link->db, e))
        trouble_add(&p->refused, e, doing, "claim.refused");
    else
        link_failed(link, e, doing);
}

/* A claim that was on the wire when the connection broke may commit after the first look. */
static void sweep(claimer *c)
{
    pthread_mutex_lock(&c->mutex);
    bool wanted = c->sweep_wanted;
    c->sweep_wanted = false;
    pthread_mutex_unlock(&c->mutex);

    bool due = c->sweep_at != 0 && now_ns() >= c->sweep_at;
    for (size_t i = 0; (wanted || due) && i < c->n; i++)
        c->kind->release_unknown(c->worker, &c->places[i]);
    if (due)
        c->sweep_at = --c->sweeps > 0 ? now_ns() + seconds_to_ns(3) : 0;
}

/* Renewal first: what we hold must not run out while we look for more. False: the worker ends. */
static bool begin_anew(claimer *c)
{
    if (!renew_wait(c->worker))
        return false;
    c->sweeps = 3;
    c->sweep_at = now_ns();
    for (size_t i = 0; i < c->n; i++)
        c->places[i].sleep.announced = 0;
    return true;
}

void *claimer_thread(void *arg)
{
    claimer *c = arg;
    cb_worker *w = c->worker;
    bool anew;

    while (!atomic_load(&w->ending) && link_ready(&w->links[c->link], &anew)) {
        if (anew && !begin_anew(c))
            break;
        sweep(c);
        claim_place *p = next_place(c);
        if (p) {
            c->kind->claim(w, p);
            atomic_store(&c->claiming, false);
        }
        if (atomic_load(&w->stopping))
            worker_changed(w);
    }
    return NULL;
}
