/* Claiming processes. One call delivers the replies that have come, takes what is due, and tells when the
 * next timer will be. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "processes.h"

/* How long a timer may stay unknown that another instance has set: nobody is notified of timers, and whoever set
 * one may be gone when it is due (STP.15). */
static const double strange_timer_seconds = 0.8;
/* While there is much to do the next timer is asked for so often, not at every look. */
static const double ask_timer_seconds = 0.05;

static size_t free_places(cb_worker *w, const claim_place *p)
{
    return process_memory_room(&w->process_memory) > 0
               ? process_domain_free(&w->processes[p->domain])
               : 0;
}

/* Makes jobs of what was claimed. What finds no memory stays leased, and comes again afterwards. */
static void take_over(cb_worker *w, process_domain *d, cb_process_claim *claim, int64_t lease_end)
{
    size_t n = cb_process_claim_count(claim), made = 0;
    process_share *share = calloc(1, sizeof *share);
    process_job **jobs = calloc(n + 1, sizeof *jobs);

    if (share) {
        share->claim = claim;
        share->memory = &w->process_memory;
        atomic_fetch_add(&share->memory->claimed, cb_process_claim_bytes(claim));
        atomic_init(&share->users, 1);
    }
    for (size_t i = 0; share && jobs && i < n; i++) {
        process_job *j = process_job_make(d, share, cb_process_claim_at(claim, i), lease_end);
        if (!j)
            break;
        metrics_timer_lag(w->metrics, d->index, j->row->waited_us);
        jobs[made++] = j;
    }
    if (made < n)
        emit(w, CB_LEVEL_ERROR, "claim.dropped", .domain = d->name, .count = (int64_t)(n - made),
             .error = "no memory");
    if (made > 0 && !process_domain_add(d, jobs, made)) {
        for (size_t i = 0; i < made; i++)
            process_job_drop(jobs[i]);
        claimer_sweep(&w->process_claims);
    }
    free(jobs);
    if (share)
        process_share_drop(share);
    else
        cb_process_claim_free(claim);
}

static void tell_of_claim(cb_worker *w, process_domain *d, size_t claimed,
                          const cb_process_look *look)
{
    metrics_process_claim(w->metrics, d->index, claimed, look);
    if (claimed > 0)
        emit(w, CB_LEVEL_DEBUG, "processes.claimed", .domain = d->name, .count = (int64_t)claimed);
    if (look->delivered > 0)
        emit(w, CB_LEVEL_DEBUG, "replies.delivered", .domain = d->name, .count = look->delivered);
    if (look->late > 0)
        emit(w, CB_LEVEL_WARN, "replies.late", .domain = d->name, .count = look->late,
             .hint = "their processes had ended: see process events LATE_REPLY");
    if (look->dead_lettered > 0)
        emit(w, CB_LEVEL_WARN, "replies.dead_lettered", .domain = d->name,
             .count = look->dead_lettered,
             .hint = "archived: see audit events REPLY_DEAD_LETTERED");
}

/* When to look again for a timer that nobody hints at. */
static void sleep_until_timer(process_domain *d, claim_place *p, const cb_process_look *look)
{
    int64_t now = now_ns();

    if (!d->claim.leave_timer) {
        d->timer_asked_at = now;
        /* 0: due, but not for us: somebody holds it, or a newer worker wrote it. That is polled for. */
        d->timer_at = look->next_seconds > 0 ? now + seconds_to_ns(look->next_seconds) : 0;
    } else {
        sleep_at_most(&p->sleep, ask_timer_seconds);
        if (look->next_seconds > 0) /* a reply to deliver */
            sleep_at_most(&p->sleep, look->next_seconds);
    }
    if (d->timer_at > 0)
        sleep_at_most(&p->sleep, ns_to_ms(d->timer_at - now) / 1000);
    if (d->n_slots > 0)
        sleep_at_most(&p->sleep, strange_timer_seconds);
}

static void claim(cb_worker *w, claim_place *p)
{
    process_domain *d = &w->processes[p->domain];
    db_link *link = &w->links[LINK_PROCESS];
    OWNED(cb_process_claim) taken = NULL;
    cb_process_look look = { .next_seconds = -1 };
    cb_error e = { 0 };
    size_t quantity = free_places(w, p);
    int64_t asked_at = now_ns();

    d->claim.leave_replies = !p->replies;
    d->claim.claim_bytes = process_memory_room(&w->process_memory);
    d->claim.leave_timer = asked_at < d->timer_asked_at + seconds_to_ns(ask_timer_seconds) &&
                           (d->timer_at == 0 || asked_at < d->timer_at);
    if (quantity == 0 && !p->replies) {
        p->sleep.hot = true; /* as soon as there is room */
        return;
    }
    if (!cb_process_claim_due(link->db, &d->claim, (int)quantity, &taken, &look, &e)) {
        sleep_after_failure(&p->sleep);
        claimer_failed(&w->process_claims, p, &e, "claim");
        return;
    }
    link_worked(link);
    trouble_end(&p->refused);
    size_t got = cb_process_claim_count(taken);
    size_t seen = got + (size_t)(look.delivered + look.late + look.dead_lettered);
    tell_of_claim(w, d, got, &look);
    if (got > 0)
        take_over(w, d, cb_process_claim_take(&taken), lease_end_from(asked_at, d->vt_seconds));
    sleep_after_claim(&p->sleep, seen, got >= quantity || look.more_processes);
    if (look.more_replies)
        claimer_hint_reply(&w->process_claims, p->domain);
    sleep_until_timer(d, p, &look);
}

static void release_unknown(cb_worker *w, claim_place *p)
{
    process_domain *d = &w->processes[p->domain];
    process_job **jobs;
    size_t n, released = 0;
    cb_error e = { 0 };

    if (d->n_slots == 0 || !process_domain_snapshot(d, &jobs, &n))
        return;
    cb_process_lease *held = calloc(n + 1, sizeof *held);
    for (size_t i = 0; held && i < n; i++)
        held[i] = (cb_process_lease){ .process_id = jobs[i]->row->process_id,
                                      .lease_no = jobs[i]->row->lease_no };
    if (held && !cb_process_release_unknown(w->links[LINK_PROCESS].db, w->id, d->kinds, d->n_kinds,
                                            held, n, &released, &e))
        claimer_failed(&w->process_claims, p, &e, "release");
    if (released > 0) {
        metrics_process_released(w->metrics, d->index, released);
        emit(w, CB_LEVEL_WARN, "process.released", .domain = d->name, .count = (int64_t)released,
             .hint = "claimed, but not begun here: given back");
    }
    free(held);
    process_snapshot_done(jobs, n);
}

static const claim_kind processes = { free_places, claim, release_unknown };

bool process_claims_init(cb_worker *w, cb_error *e)
{
    if (!claimer_init(&w->process_claims, w, &processes, LINK_PROCESS, w->n_domains, e))
        return false;
    for (size_t i = 0; i < w->n_domains; i++) {
        process_domain *d = &w->processes[i];
        claim_place *p = &w->process_claims.places[i];
        size_t first = d->n_slots > 0 ? 0 : 1; /* who runs none is not to be woken for them */
        p->always = d->n_queues > 1;
        p->sleep = (sleeper){ .link = &w->links[LINK_PROCESS],
                              .queues = (const char *const *)d->queues + first,
                              .n_queues = d->n_queues - first,
                              .poll_seconds = w->domains[i].poll_seconds,
                              .notify = w->domains[i].notify };
        sleep_init(&p->sleep, w, d->name);
    }
    return true;
}

void process_hint_reply(cb_worker *w, const char *queue)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        process_domain *d = &w->processes[i];
        for (size_t k = 1; k < d->n_queues; k++) {
            if (strcmp(d->queues[k], queue) == 0)
                claimer_hint_reply(&w->process_claims, i);
        }
    }
}

bool processes_former_replies(cb_worker *w, cb_error *e)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        const process_domain *d = &w->processes[i];
        /* The claim's own options are the claimer's. */
        cb_process_claim_options o = { .worker = w->id,
                                       .kinds = d->kinds,
                                       .n_kinds = d->n_kinds,
                                       .reply_grace_seconds = d->claim.reply_grace_seconds };
        int64_t delivered = 0;
        if (d->n_queues > 1 &&
            !cb_process_deliver_former(w->links[LINK_KEEP].db, &o, &delivered, e))
            return false;
        if (delivered > 0) {
            emit(w, CB_LEVEL_INFO, "replies.delivered", .domain = d->name, .count = delivered,
                 .hint = "from a reply queue of before: the configuration names another");
            claimer_hint(&w->process_claims, i);
        }
    }
    return true;
}

bool processes_register(cb_worker *w, cb_db *db, cb_error *e)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        process_domain *d = &w->processes[i];
        if (d->n_kinds > 0 && !cb_process_register(db, d->kinds, d->n_kinds, e))
            return cb_fail_while(e, "registering the process types of domain '%s'", d->name);
    }
    return true;
}

void processes_release(cb_worker *w, cb_db *db)
{
    cb_error e;

    for (size_t i = 0; i < w->n_domains; i++) {
        process_domain *d = &w->processes[i];
        if (d->n_slots > 0)
            (void)!cb_process_release_unknown(db, w->id, d->kinds, d->n_kinds, NULL, 0, NULL, &e);
    }
}
