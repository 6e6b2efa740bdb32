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
               ? lane_free_places(&w->domains[p->domain].processes.lane)
               : 0;
}

/* Makes jobs of what was claimed. What finds no memory stays leased, and comes again afterwards. */
static void take_over(cb_worker *w, process_lane *l, cb_process_claim *claim, int64_t lease_end)
{
    size_t n = cb_process_claim_count(claim), made = 0;
    claim_share *share = calloc(1, sizeof *share);
    job **jobs = calloc(n + 1, sizeof *jobs);

    if (share) {
        share->ops = &process_ops;
        share->claim = claim;
        share->bytes = cb_process_claim_bytes(claim);
        share->counted = &w->process_memory.claimed;
        atomic_fetch_add(share->counted, share->bytes);
        atomic_init(&share->users, 1);
    }
    for (size_t i = 0; share && jobs && i < n; i++) {
        const cb_process_row *row = cb_process_claim_at(claim, i);
        job *j = process_job_make(l, share, row, lease_end);
        if (!j)
            break;
        metrics_timer_lag(w->metrics, l->lane.index, row->waited_us);
        jobs[made++] = j;
    }
    if (made < n)
        emit(w, CB_LEVEL_ERROR, "claim.dropped", .domain = l->lane.name,
             .count = (int64_t)(n - made), .error = "no memory");
    if (made > 0)
        lane_add(&l->lane, jobs, made);
    free(jobs);
    if (share)
        share_drop(share);
    else
        cb_process_claim_free(claim);
}

static void tell_of_claim(cb_worker *w, const lane *l, size_t claimed, const cb_process_look *look)
{
    metrics_process_claim(w->metrics, l->index, claimed, look);
    if (claimed > 0)
        emit(w, CB_LEVEL_DEBUG, "processes.claimed", .domain = l->name, .count = (int64_t)claimed);
    if (look->delivered > 0)
        emit(w, CB_LEVEL_DEBUG, "replies.delivered", .domain = l->name, .count = look->delivered);
    if (look->late > 0)
        emit(w, CB_LEVEL_WARN, "replies.late", .domain = l->name, .count = look->late,
             .hint = "their processes had ended: see process events LATE_REPLY");
    if (look->dead_lettered > 0)
        emit(w, CB_LEVEL_WARN, "replies.dead_lettered", .domain = l->name,
             .count = look->dead_lettered,
             .hint = "archived: see audit events REPLY_DEAD_LETTERED");
}

/* When to look again for a timer that nobody hints at. */
static void sleep_until_timer(process_lane *l, claim_place *p, const cb_process_look *look)
{
    int64_t now = now_ns();

    if (!l->claim.leave_timer) {
        l->timer_asked_at = now;
        /* 0: due, but not for us: somebody holds it, or a newer worker wrote it. That is polled for. */
        l->timer_at = look->next_seconds > 0 ? now + seconds_to_ns(look->next_seconds) : 0;
    } else {
        sleep_at_most(&p->sleep, ask_timer_seconds);
        if (look->next_seconds > 0) /* a reply to deliver */
            sleep_at_most(&p->sleep, look->next_seconds);
    }
    if (l->timer_at > 0)
        sleep_at_most(&p->sleep, ns_to_ms(l->timer_at - now) / 1000);
    if (l->lane.n_slots > 0)
        sleep_at_most(&p->sleep, strange_timer_seconds);
}

static void claim(cb_worker *w, claim_place *p)
{
    process_lane *l = &w->domains[p->domain].processes;
    db_link *link = &w->links[LINK_PROCESS];
    OWNED(cb_process_claim) taken = NULL;
    cb_process_look look = { .next_seconds = -1 };
    cb_error e = { 0 };
    size_t quantity = free_places(w, p);
    int64_t asked_at = now_ns();

    l->claim.leave_replies = !p->replies;
    l->claim.claim_bytes = process_memory_room(&w->process_memory);
    l->claim.leave_timer = asked_at < l->timer_asked_at + seconds_to_ns(ask_timer_seconds) &&
                           (l->timer_at == 0 || asked_at < l->timer_at);
    if (quantity == 0 && !p->replies) {
        p->sleep.hot = true; /* as soon as there is room */
        return;
    }
    if (!cb_process_claim_due(link->db, &l->claim, (int)quantity, &taken, &look, &e)) {
        sleep_after_failure(&p->sleep);
        claimer_failed(&w->process_claims, p, &e, "claim");
        return;
    }
    link_worked(link);
    trouble_end(&p->refused);
    size_t got = cb_process_claim_count(taken);
    size_t seen = got + (size_t)(look.delivered + look.late + look.dead_lettered);
    tell_of_claim(w, &l->lane, got, &look);
    if (got > 0)
        take_over(w, l, cb_process_claim_take(&taken),
                  lease_end_from(asked_at, l->lane.vt_seconds));
    sleep_after_claim(&p->sleep, seen, got >= quantity || look.more_processes);
    if (look.more_replies)
        claimer_hint_reply(&w->process_claims, p->domain);
    sleep_until_timer(l, p, &look);
}

static void release_unknown(cb_worker *w, claim_place *p)
{
    process_lane *l = &w->domains[p->domain].processes;
    job **jobs;
    size_t n, released = 0;
    cb_error e = { 0 };

    if (l->lane.n_slots == 0 || !lane_snapshot(&l->lane, &jobs, &n))
        return;
    cb_process_lease *held = calloc(n + 1, sizeof *held);
    for (size_t i = 0; held && i < n; i++) {
        const cb_process_row *row = ((process_job *)jobs[i])->row;
        held[i] = (cb_process_lease){ .process_id = row->process_id, .lease_no = row->lease_no };
    }
    if (held && !cb_process_release_unknown(w->links[LINK_PROCESS].db, w->id, l->kinds, l->n_kinds,
                                            held, n, &released, &e))
        claimer_failed(&w->process_claims, p, &e, "release");
    if (released > 0) {
        metrics_process_released(w->metrics, l->lane.index, released);
        emit(w, CB_LEVEL_WARN, "process.released", .domain = l->lane.name,
             .count = (int64_t)released, .hint = "claimed, but not begun here: given back");
    }
    free(held);
    snapshot_done(jobs, n);
}

static const claim_kind processes = { free_places, claim, release_unknown };

bool process_claims_init(cb_worker *w, cb_error *e)
{
    if (!claimer_init(&w->process_claims, w, &processes, LINK_PROCESS, w->n_domains, e))
        return false;
    for (size_t i = 0; i < w->n_domains; i++) {
        process_lane *l = &w->domains[i].processes;
        claim_place *p = &w->process_claims.places[i];
        size_t first = l->lane.n_slots > 0 ? 0 : 1; /* who runs none is not to be woken for them */
        p->always = l->n_queues > 1;
        p->sleep = (sleeper){ .link = &w->links[LINK_PROCESS],
                              .queues = (const char *const *)l->queues + first,
                              .n_queues = l->n_queues - first,
                              .poll_seconds = l->lane.poll_seconds,
                              .notify = l->lane.notify };
        sleep_init(&p->sleep, w, l->lane.name);
    }
    return true;
}

void process_hint_reply(cb_worker *w, const char *queue)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        process_lane *l = &w->domains[i].processes;
        for (size_t k = 1; k < l->n_queues; k++) {
            if (strcmp(l->queues[k], queue) == 0)
                claimer_hint_reply(&w->process_claims, i);
        }
    }
}

bool processes_former_replies(cb_worker *w, cb_error *e)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        const process_lane *l = &w->domains[i].processes;
        /* The claim's own options are the claimer's. */
        cb_process_claim_options o = { .worker = w->id,
                                       .kinds = l->kinds,
                                       .n_kinds = l->n_kinds,
                                       .reply_grace_seconds = l->claim.reply_grace_seconds };
        int64_t delivered = 0;
        if (l->n_queues > 1 &&
            !cb_process_deliver_former(w->links[LINK_KEEP].db, &o, &delivered, e))
            return false;
        if (delivered > 0) {
            emit(w, CB_LEVEL_INFO, "replies.delivered", .domain = l->lane.name, .count = delivered,
                 .hint = "from a reply queue of before: the configuration names another");
            claimer_hint(&w->process_claims, i);
        }
    }
    return true;
}

bool processes_register(cb_worker *w, cb_db *db, cb_error *e)
{
    for (size_t i = 0; i < w->n_domains; i++) {
        process_lane *l = &w->domains[i].processes;
        if (l->n_kinds > 0 && !cb_process_register(db, l->kinds, l->n_kinds, e))
            return cb_fail_while(e, "registering the process types of domain '%s'", l->lane.name);
    }
    return true;
}

void processes_release(cb_worker *w, cb_db *db)
{
    cb_error e;

    for (size_t i = 0; i < w->n_domains; i++) {
        process_lane *l = &w->domains[i].processes;
        if (l->lane.n_slots > 0)
            (void)!cb_process_release_unknown(db, w->id, l->kinds, l->n_kinds, NULL, 0, NULL, &e);
    }
}
