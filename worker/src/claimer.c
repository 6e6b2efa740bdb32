/* The claiming thread of either kind. When a lane is empty it goes to sleep as sleep.c says. */
#include "claimer.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"

/* However much is due, replies that could not be put into the inbox of their process, and of which
 * nobody may have been notified, are looked for so often. */
static const int64_t longest_without_replies_ns = 20000000;

/* A sender wakes one sleeper by its name. Others hear that too, and look so long afterwards whether
 * something is there all the same: who was called may be dead, stopped or full. That bounds how
 * long anything waits for it. Longer when such looks find nothing, which tells that it came. */
static const int64_t shortest_doubt_ns = 50000000, longest_doubt_ns = 200000000;

/* While work trickles, so much of the time goes into claims at most: the next one waits until so
 * many times as long as claims take has passed since the last. What is due by then comes with one
 * call, which costs as much for one item as for three. It trickles when several are in flight here
 * and the last claim left nothing behind: what is alone is never kept waiting, and neither is a
 * backlog. By how long claims take, because that tells how busy the server is: on an idle one they
 * take a millisecond, and a wait of ten would be felt. */
enum {
    CLAIM_PACE = 4
};
static const int64_t longest_claim_pace_ns = 30000000;

void claimer_init(claimer *c, cb_worker *w, lane **lanes, size_t n)
{
    c->worker = w;
    c->ops = lanes[0]->ops;
    c->lanes = lanes;
    c->n = n;
    pthread_mutex_init(&c->mutex, NULL);
    waiting_init(&c->changed);
    for (size_t i = 0; i < n; i++) {
        claim_state *state = &lanes[i]->claiming;
        trouble_init(&state->refused, w, c->ops->claim_connection, lanes[i]->name, true);
        sleep_init(&state->sleep, &w->connections[c->ops->claim_connection], lanes[i]->name);
    }
}

void claimer_done(claimer *c)
{
    if (!c->worker) /* never opened */
        return;
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
}

void claimer_reset(claimer *c)
{
    c->sweep_wanted = false;
    c->sweep_at = 0;
    for (size_t i = 0; i < c->n; i++) {
        claim_state *state = &c->lanes[i]->claiming;
        state->hinted = state->replied = state->called = false;
        state->look_by = state->doubt_at = 0;
        state->doubt_ns = shortest_doubt_ns;
        sleep_reset(&state->sleep);
    }
}

/* With the mutex held. */
static void claimer_wake(claimer *c)
{
    if (c->waiting)
        pthread_cond_signal(&c->changed);
}

static claimer *claimer_of(const lane *l)
{
    return &l->worker->claims[l->ops->kind];
}

void claimer_hint(lane *l)
{
    claimer *c = claimer_of(l);

    pthread_mutex_lock(&c->mutex);
    l->claiming.hinted = true;
    claimer_wake(c);
    pthread_mutex_unlock(&c->mutex);
}

void claimer_hint_reply(lane *l)
{
    claimer *c = claimer_of(l);

    pthread_mutex_lock(&c->mutex);
    l->claiming.hinted = l->claiming.replied = true;
    claimer_wake(c);
    pthread_mutex_unlock(&c->mutex);
}

void claimer_call(lane *l, bool for_reply)
{
    claimer *c = claimer_of(l);

    pthread_mutex_lock(&c->mutex);
    l->claiming.called = l->claiming.hinted = true;
    l->claiming.replied |= for_reply;
    claimer_wake(c);
    pthread_mutex_unlock(&c->mutex);
}

void claimer_doubt(lane *l)
{
    claimer *c = claimer_of(l);
    claim_state *state = &l->claiming;

    pthread_mutex_lock(&c->mutex);
    if (state->doubt_at == 0) {
        state->doubt_at = now_ns() + state->doubt_ns;
        claimer_wake(c);
    }
    pthread_mutex_unlock(&c->mutex);
}

void claimer_hint_queue(claimer *c, const char *queue)
{
    for (size_t i = 0; i < c->n; i++) {
        const sleeper *s = &c->lanes[i]->claiming.sleep;
        for (size_t k = c->lanes[i]->first_reply; k < s->n_queues; k++) {
            if (strcmp(s->queues[k], queue) == 0)
                claimer_hint(c->lanes[i]);
        }
    }
}

void claimer_look_within(lane *l, double seconds)
{
    int64_t at = now_ns() + seconds_to_ns(seconds);
    claimer *c = claimer_of(l);
    claim_state *state = &l->claiming;

    pthread_mutex_lock(&c->mutex);
    if (state->look_by == 0 || at < state->look_by) {
        state->look_by = at;
        claimer_wake(c);
    }
    pthread_mutex_unlock(&c->mutex);
}

void claimer_freed(claimer *c)
{
    pthread_mutex_lock(&c->mutex);
    claimer_wake(c);
    pthread_mutex_unlock(&c->mutex);
}

void claimer_sweep(claimer *c)
{
    pthread_mutex_lock(&c->mutex);
    c->sweep_wanted = true;
    claimer_wake(c);
    pthread_mutex_unlock(&c->mutex);
}

/* ---- whose turn it is ---- */

static bool lane_takes_replies(const lane *l)
{
    return l->first_reply < l->claiming.sleep.n_queues;
}

/* When nothing is free, only replies in queues are to be looked for; when at the latest. Whoever
 * frees a place wakes us; the memory of a claim that a renewal held on to does not. */
static int64_t lane_look_for_replies_at(const lane *l, int64_t now)
{
    const claim_state *state = &l->claiming;
    int64_t at = state->replies_at + longest_without_replies_ns;

    if (!lane_takes_replies(l))
        return now + seconds_to_ns(1);
    if (state->replied)
        return now;
    return at > state->sleep.poll_at ? at : state->sleep.poll_at;
}

/* Until when a claim would be too soon after the last one; 0: it is not. */
static int64_t lane_paced_until(const lane *l)
{
    const claim_state *state = &l->claiming;
    int64_t pace = CLAIM_PACE * state->typical_ns;

    if (!lane_trickles(l))
        return 0;
    return state->claimed_at + (pace < longest_claim_pace_ns ? pace : longest_claim_pace_ns);
}

/* True when there is reason to claim now; else *at is moved to when there will be at the latest. */
static bool lane_is_due(lane *l, int64_t now, int64_t *at)
{
    claim_state *state = &l->claiming;
    bool free = l->ops->free_places(l) > 0;
    int64_t next = free ? state->sleep.poll_at : lane_look_for_replies_at(l, now);

    if (!free && state->called && l->n_slots > 0) /* to pass it on */
        return true;
    int64_t refused_until = trouble_until(&state->refused);

    if (refused_until > 0) { /* whoever hints: it would only be refused again */
        *at = refused_until < *at ? refused_until : *at;
        return false;
    }
    if (free && state->look_by && state->look_by < next)
        next = state->look_by;
    if ((free || l->n_slots == 0) && state->doubt_at && state->doubt_at < next)
        next = state->doubt_at;
    if ((free && (state->hinted || state->sleep.hot)) || now >= next) {
        next = lane_paced_until(l);
        if (now >= next)
            return true;
    }
    if (next < *at)
        *at = next;
    return false;
}

/* With the mutex held. */
static lane *claimer_find_due(claimer *c, int64_t now, int64_t *until)
{
    for (size_t i = 0; i < c->n && !atomic_load(&c->worker->stopping); i++) {
        lane *l = c->lanes[(c->turn + i) % c->n];
        claim_state *state = &l->claiming;
        if (!lane_is_due(l, now, until))
            continue;
        state->doubts = !state->hinted && state->doubt_at && now >= state->doubt_at;
        state->replies = state->replied || state->doubt_at ||
                         now >= state->replies_at + longest_without_replies_ns;
        if (state->replies)
            state->replies_at = now;
        state->comes = state->called;
        state->hinted = state->replied = state->called = false;
        state->look_by = state->doubt_at = 0;
        c->turn = (c->turn + i + 1) % c->n;
        return l;
    }
    return NULL;
}

/* The next lane to claim for, when there is one. NULL after waiting, or when it is time to
 * sweep. */
static lane *claimer_next_lane(claimer *c)
{
    int64_t now = now_ns(), until = INT64_MAX;
    lane *found = NULL;

    pthread_mutex_lock(&c->mutex);
    if (!atomic_load(&c->worker->stopping)) {
        /* Said before `stopping` is looked at again: whoever stops sees one or the other. */
        atomic_store(&c->claiming, true);
        found = claimer_find_due(c, now, &until);
        atomic_store(&c->claiming, found != NULL);
    }
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

/* ---- claiming ---- */

static db_connection *connection_of(claimer *c)
{
    return &c->worker->connections[c->ops->claim_connection];
}

/* One lane must not keep the others from their claims: a refusal is not a matter of the
 * connection. */
static void claimer_failed(claimer *c, lane *l, const cb_error *e, const char *doing)
{
    if (is_refusal(connection_of(c)->db, e)) {
        trouble_add(&l->claiming.refused, e, doing, "claim.refused");
        sleep_leave(&l->claiming.sleep);
    } else {
        connection_failed(connection_of(c), e, doing);
    }
}

/* A look because of a call to somebody else tells whether that one came. */
static void claimer_learn(claimer *c, lane *l, bool found)
{
    claim_state *state = &l->claiming;

    if (!state->doubts)
        return;
    pthread_mutex_lock(&c->mutex);
    state->doubt_ns = found                                    ? shortest_doubt_ns
                      : 2 * state->doubt_ns > longest_doubt_ns ? longest_doubt_ns
                                                               : 2 * state->doubt_ns;
    pthread_mutex_unlock(&c->mutex);
    if (found)
        sleep_prefer(&state->sleep);
}

/* Makes jobs of what was claimed. What finds no memory stays leased, and comes again afterwards. */
static void claimer_take_over(lane *l, const claimed *got, int64_t lease_end)
{
    cb_worker *w = l->worker;
    claim_share *share = share_make(l, got->claim, got->bytes);
    job **jobs = calloc(got->n + 1, sizeof *jobs);
    size_t made = 0;

    for (; share && jobs && made < got->n; made++) {
        jobs[made] = l->ops->job_make(l, share, made, lease_end);
        if (!jobs[made])
            break;
    }
    if (made < got->n)
        emit(w, CB_LEVEL_ERROR, "claim.dropped", .domain = l->name,
             .count = (int64_t)(got->n - made), .error = "out of memory");
    if (made > 0)
        lane_add(l, jobs, made);
    free(jobs);
    if (share)
        share_drop(share);
    else
        l->ops->claim_free(got->claim);
}

static void claimer_claim(claimer *c, lane *l)
{
    claim_state *state = &l->claiming;
    claimed got = { .look_within = -1 };
    cb_error e = { 0 };
    size_t quantity = c->ops->free_places(l);
    int64_t asked_at = now_ns();

    state->claimed_at = asked_at;
    if (quantity == 0 && !(lane_takes_replies(l) && state->replies)) {
        state->sleep.hot = true; /* as soon as there is room */
        if (state->comes)
            sleep_pass_on(&state->sleep);
        return;
    }
    if (!c->ops->claim(l, connection_of(c)->db, quantity, &got, &e)) {
        sleep_after_failure(&state->sleep);
        claimer_failed(c, l, &e, "claim");
        return;
    }
    state->typical_ns += (now_ns() - asked_at - state->typical_ns) / 4;
    connection_worked(connection_of(c));
    trouble_end(&state->refused);
    if (got.n > 0)
        claimer_take_over(l, &got, lease_end_from(asked_at, l->vt_seconds));
    sleep_after_claim(&state->sleep, got.seen, got.more, state->comes);
    claimer_learn(c, l, got.seen > 0);
    if (got.more_replies)
        claimer_hint_reply(l);
    if (got.look_within >= 0)
        sleep_at_most(&state->sleep, got.look_within);
}

/* ---- giving back ---- */

/* Gives back what the database says we hold and we do not: the answer to a claim was lost. Only the
 * claimer claims, so between two claims the two views can be compared. */
static void claimer_release_unknown(claimer *c, lane *l)
{
    job **jobs;
    size_t n, released = 0;
    cb_error e = { 0 };

    if (l->n_slots == 0 || !lane_snapshot(l, &jobs, &n))
        return;
    if (!l->ops->release_unknown(l, connection_of(c)->db, jobs, n, &released, &e))
        claimer_failed(c, l, &e, "release");
    if (released > 0) {
        c->ops->count_released(c->worker->metrics, l->index, released);
        emit(c->worker, CB_LEVEL_WARN, c->ops->released_event, .domain = l->name,
             .count = (int64_t)released, .hint = c->ops->released_hint);
    }
    snapshot_done(jobs, n);
}

/* A claim that was on the wire when the connection broke may commit after the first look. */
static void claimer_sweep_leases(claimer *c)
{
    pthread_mutex_lock(&c->mutex);
    bool wanted = c->sweep_wanted;
    c->sweep_wanted = false;
    pthread_mutex_unlock(&c->mutex);

    bool due = c->sweep_at != 0 && now_ns() >= c->sweep_at;
    for (size_t i = 0; (wanted || due) && i < c->n; i++)
        claimer_release_unknown(c, c->lanes[i]);
    if (due)
        c->sweep_at = --c->sweeps > 0 ? now_ns() + seconds_to_ns(3) : 0;
}

/* Renewal first: what we hold must not run out while we look for more. False: the worker ends. */
static bool claimer_begin_anew(claimer *c)
{
    if (!renew_wait(c->worker))
        return false;
    c->sweeps = 3;
    c->sweep_at = now_ns();
    for (size_t i = 0; i < c->n; i++)
        c->lanes[i]->claiming.sleep.announced = 0;
    return true;
}

/* While the worker stops: who calls us is to call somebody else. Only then is the database asked,
 * which may not answer any more. */
static void claimer_leave(claimer *c)
{
    for (size_t i = 0; i < c->n; i++) {
        claim_state *state = &c->lanes[i]->claiming;
        pthread_mutex_lock(&c->mutex);
        bool called = state->called;
        state->called = false;
        pthread_mutex_unlock(&c->mutex);
        if (called)
            sleep_pass_on(&state->sleep);
    }
}

void *claimer_thread(void *arg)
{
    claimer *c = arg;
    cb_worker *w = c->worker;
    bool anew;

    while (!atomic_load(&w->ending) && connection_ready(connection_of(c), &anew)) {
        if (anew && !claimer_begin_anew(c))
            break;
        claimer_sweep_leases(c);
        lane *l = claimer_next_lane(c);
        if (l) {
            claimer_claim(c, l);
            atomic_store(&c->claiming, false);
        }
        if (atomic_load(&w->stopping)) {
            claimer_leave(c);
            worker_changed(w);
        }
    }
    return NULL;
}
