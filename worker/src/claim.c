/* The claiming thread: takes commands for the free places of every domain, one domain at a time, those
 * with most reason first in turn. When a domain is empty it goes to sleep as sleep.c says. */
#include <stdlib.h>

#include "clock.h"
#include "engine.h"
#include "sleep.h"

/* With the settler busy with one half of the places, the other half can be claimed. */
static size_t most_at_once(const served *d)
{
    return d->places >= 8 ? (size_t)(d->places + 1) / 2 : (size_t)d->places;
}

bool claims_init(cb_worker *w, cb_error *e)
{
    pthread_mutex_init(&w->claims.mutex, NULL);
    waiting_init(&w->claims.changed);
    w->claims.places = calloc(w->n_domains, sizeof *w->claims.places);
    if (!w->claims.places)
        return cb_fail(e, CB_MEMORY, "no memory for %zu domains", w->n_domains);
    for (size_t i = 0; i < w->n_domains; i++) {
        served *d = &w->domains[i];
        w->claims.places[i].domain = d;
        cb_receive_options options = { .worker = w->id,
                                       .vt_seconds = d->vt_seconds,
                                       .default_max_attempts = d->max_attempts,
                                       .default_timeout_seconds = d->timeout_seconds };
        if (!cb_receiver_open(d->name, &options, &w->claims.places[i].receiver, e))
            return false;
    }
    return true;
}

void claims_done(cb_worker *w)
{
    for (size_t i = 0; w->claims.places && i < w->n_domains; i++)
        cb_receiver_free(w->claims.places[i].receiver);
    free(w->claims.places);
    pthread_cond_destroy(&w->claims.changed);
    pthread_mutex_destroy(&w->claims.mutex);
}

void claim_hint(cb_worker *w, size_t domain)
{
    pthread_mutex_lock(&w->claims.mutex);
    w->claims.places[domain].hinted = true;
    if (w->claims.waiting)
        pthread_cond_signal(&w->claims.changed);
    pthread_mutex_unlock(&w->claims.mutex);
}

void claim_freed(cb_worker *w)
{
    pthread_mutex_lock(&w->claims.mutex);
    if (w->claims.waiting)
        pthread_cond_signal(&w->claims.changed);
    pthread_mutex_unlock(&w->claims.mutex);
}

/* True when there is reason to claim now; else *at is moved to when there will be at the latest. */
static bool is_due(claim_place *p, int64_t now, int64_t *at)
{
    if (served_free_places(p->domain) == 0)
        return false;
    if (p->hinted || p->hot || now >= p->poll_at)
        return true;
    if (p->poll_at < *at)
        *at = p->poll_at;
    return false;
}

/* The next domain to claim for, when there is one. NULL after waiting, or when it is time to sweep. */
static claim_place *next_place(cb_worker *w)
{
    claimer *c = &w->claims;
    claim_place *found = NULL;
    int64_t now = now_ns(), until = INT64_MAX;

    pthread_mutex_lock(&c->mutex);
    /* Said before `stopping` is looked at: whoever stops sees one or the other. */
    atomic_store(&c->claiming, true);
    for (size_t i = 0; i < w->n_domains && !found && !atomic_load(&w->stopping); i++) {
        claim_place *p = &c->places[(c->turn + i) % w->n_domains];
        if (is_due(p, now, &until)) {
            found = p;
            p->hinted = false;
            c->turn = (c->turn + i + 1) % w->n_domains;
        }
    }
    atomic_store(&c->claiming, found != NULL);
    if (!found && !atomic_load(&w->ending)) {
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

/* Makes jobs of what was claimed. What finds no memory stays leased, and comes again afterwards. */
static void take_over(cb_worker *w, served *d, cb_claim *claim, int64_t lease_end)
{
    size_t n = cb_claim_count(claim), made = 0;
    claim_share *share = calloc(1, sizeof *share);
    job **jobs = calloc(n + 1, sizeof *jobs);

    if (share) {
        share->claim = claim;
        atomic_init(&share->users, 1);
    }
    for (size_t i = 0; share && jobs && i < n; i++) {
        job *j = job_make(d, share, cb_claim_at(claim, i), lease_end);
        if (!j)
            break;
        metrics_wait(w->metrics, d->index, j->command->waited_us);
        jobs[made++] = j;
    }
    if (made < n)
        emit(w, CB_LEVEL_ERROR, "claim.dropped", .domain = d->name, .count = (int64_t)(n - made),
             .error = "no memory");
    bool may_start = made == 0 || served_add(d, jobs, made);
    for (size_t i = 0; i < made && !may_start; i++)
        job_give_back(jobs[i]);
    free(jobs);
    if (share)
        share_drop(share);
    else
        cb_claim_free(claim);
}

static void tell_of_claim(cb_worker *w, served *d, const cb_claim *claim)
{
    size_t claimed = cb_claim_count(claim), poisoned = cb_claim_poisoned(claim),
           exhausted = cb_claim_exhausted(claim);

    metrics_claim(w->metrics, d->index, claimed, poisoned, exhausted);
    if (claimed > 0)
        emit(w, CB_LEVEL_DEBUG, "commands.claimed", .domain = d->name, .count = (int64_t)claimed);
    if (poisoned > 0)
        emit(w, CB_LEVEL_WARN, "message.poisoned", .domain = d->name, .count = (int64_t)poisoned,
             .hint = "archived: see audit events POISON_ARCHIVED");
    if (exhausted > 0)
        emit(w, CB_LEVEL_WARN, "lease.exhausted", .domain = d->name, .count = (int64_t)exhausted,
             .hint =
                 "commands whose runs all ended without an outcome are in the TSQ: commandbus tsq "
                 "list");
}

/* A domain that cannot be claimed must not keep the others from it: a refusal is no matter of the
 * connection. */
static void claim_failed(cb_worker *w, const served *d, const cb_error *e, const char *doing)
{
    db_link *link = &w->links[LINK_CLAIM];

    if (e->code == CB_LOST || e->code == CB_AGAIN || cb_db_is_lost(link->db))
        link_failed(link, e, doing);
    else
        emit(w, CB_LEVEL_WARN, "claim.refused", .domain = d->name, .error = e->message,
             .hint = e->hint, .error_code = e->sqlstate, .outcome = doing);
}

static void claim_for(cb_worker *w, claim_place *p)
{
    served *d = p->domain;
    db_link *link = &w->links[LINK_CLAIM];
    OWNED(cb_claim) claim = NULL;
    cb_error e = { 0 };
    size_t quantity = served_free_places(d);

    if (quantity > most_at_once(d))
        quantity = most_at_once(d);
    int64_t asked_at = now_ns();
    if (!cb_receive(link->db, p->receiver, (int)quantity, &claim, &e)) {
        sleep_after_failure(p);
        claim_failed(w, d, &e, "claim");
        return;
    }
    link_worked(link);
    size_t got = cb_claim_count(claim);
    size_t seen = got + cb_claim_poisoned(claim) + cb_claim_exhausted(claim);
    tell_of_claim(w, d, claim);
    if (got > 0)
        take_over(w, d, cb_claim_take(&claim), lease_end_from(asked_at, d->vt_seconds));
    sleep_after_claim(w, p, seen, quantity);
}

/* What the database says we hold and we do not: the answer to a claim was lost. Only this thread
 * claims, so between two claims the two views can be compared. */
static void release_unknown(cb_worker *w, served *d)
{
    job **jobs;
    size_t n, released = 0;
    cb_error e = { 0 };

    if (!served_snapshot(d, &jobs, &n))
        return;
    cb_lease *held = calloc(n + 1, sizeof *held);
    for (size_t i = 0; held && i < n; i++)
        held[i] = (cb_lease){ .domain = d->name,
                              .command_id = jobs[i]->command->command_id,
                              .lease_no = jobs[i]->command->lease_no };
    if (held &&
        !cb_lease_release_unknown(w->links[LINK_CLAIM].db, d->name, w->id, held, n, &released, &e))
        claim_failed(w, d, &e, "release");
    if (released > 0) {
        metrics_released(w->metrics, d->index, released);
        emit(w, CB_LEVEL_WARN, "lease.released", .domain = d->name, .count = (int64_t)released,
             .hint = "claimed, but the answer never arrived: given back uncharged");
    }
    free(held);
    snapshot_done(jobs, n);
}

/* A claim that was on the wire when the connection broke may commit after the first look. */
static void sweep(cb_worker *w)
{
    claimer *c = &w->claims;

    if (c->sweep_at == 0 || now_ns() < c->sweep_at)
        return;
    for (size_t i = 0; i < w->n_domains; i++)
        release_unknown(w, &w->domains[i]);
    c->sweep_at = --c->sweeps > 0 ? now_ns() + seconds_to_ns(3) : 0;
}

void *claim_thread(void *worker)
{
    cb_worker *w = worker;
    bool anew;

    while (!atomic_load(&w->ending) && link_ready(&w->links[LINK_CLAIM], &anew)) {
        if (anew) {
            /* Renewal first: what we hold must not run out while we look for more. */
            if (!renew_wait(w))
                break;
            w->claims.sweeps = 3;
            w->claims.sweep_at = now_ns();
            for (size_t i = 0; i < w->n_domains; i++)
                w->claims.places[i].announced = 0;
        }
        sweep(w);
        claim_place *p = next_place(w);
        if (p) {
            claim_for(w, p);
            atomic_store(&w->claims.claiming, false);
        }
        if (atomic_load(&w->stopping))
            worker_changed(w);
    }
    return NULL;
}
