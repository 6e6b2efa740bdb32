/* A lane: its places, the jobs in them and the slots that run them. */
#include "lane.h"

#include <stdlib.h>

#include "clock.h"
#include "defaults.h"
#include "engine.h"
#include "fail.h"

/* ---- jobs ---- */

void job_init(job *j, lane *l, claim_share *share, int64_t lease_end)
{
    j->lane = l;
    j->share = share;
    j->lease_seconds = l->vt_seconds;
    atomic_init(&j->lease_end, lease_end);
    atomic_init(&j->users, 1);
    atomic_fetch_add(&share->users, 1);
}

void job_drop(job *j)
{
    if (atomic_fetch_sub(&j->users, 1) > 1)
        return;
    claim_share *share = j->share; /* what the job frees may borrow from it */
    j->lane->ops->job_free(j);
    share_drop(share);
}

claim_share *share_make(const lane *l, void *claim, size_t bytes)
{
    claim_share *share = calloc(1, sizeof *share);

    if (!share)
        return NULL;
    share->ops = l->ops;
    share->claim = claim;
    share->bytes = bytes;
    share->counted = &l->worker->claimed_bytes[l->ops->kind];
    atomic_fetch_add(share->counted, bytes);
    atomic_init(&share->users, 1);
    return share;
}

void share_drop(claim_share *share)
{
    if (atomic_fetch_sub(&share->users, 1) > 1)
        return;
    atomic_fetch_sub(share->counted, share->bytes);
    share->ops->claim_free(share->claim);
    free(share);
}

double lease_margin(double vt_seconds)
{
    return vt_seconds > 10 ? 1 : vt_seconds / 10;
}

int64_t lease_end_from(int64_t asked_at, double vt_seconds)
{
    return asked_at + seconds_to_ns(vt_seconds - lease_margin(vt_seconds));
}

int64_t job_lease_left(const job *j)
{
    int64_t left = atomic_load(&j->lease_end) - now_ns();

    return left > 0 ? left : 0;
}

/* ---- opening and closing ---- */

void lane_init(lane *l, cb_worker *w, const lane_ops *ops, size_t index,
               const cb_worker_domain_options *o)
{
    l->worker = w;
    l->ops = ops;
    l->index = index;
    l->name = w->domains[index].name;
    l->vt_seconds = o->visibility_timeout_seconds > 0 ? o->visibility_timeout_seconds
                                                      : DEFAULT_VISIBILITY_SECONDS;
    l->claiming.sleep.poll_seconds =
        o->poll_interval_seconds > 0 ? o->poll_interval_seconds : DEFAULT_POLL_SECONDS;
    l->claiming.sleep.notify = !o->no_notify;
    pthread_mutex_init(&l->mutex, NULL);
    waiting_init(&l->work);
}

bool lane_open_slots(lane *l, int slots, int places, cb_error *e)
{
    l->slots = calloc((size_t)slots + 1, sizeof *l->slots);
    if (!l->slots)
        return fail_memory(e);
    l->n_slots = slots;
    l->n_places = places;
    for (int i = 0; i < slots; i++)
        l->slots[i].lane = l;
    return true;
}

void lane_done(lane *l)
{
    if (!l->worker) /* never opened */
        return;
    while (l->jobs) {
        job *j = l->jobs;
        l->jobs = j->next;
        job_drop(j);
    }
    free(l->slots);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->mutex);
}

/* ---- places ---- */

size_t lane_free_places(const lane *l)
{
    size_t taken = atomic_load(&l->in_flight);

    return taken < (size_t)l->n_places ? (size_t)l->n_places - taken : 0;
}

bool lane_trickles(const lane *l)
{
    return atomic_load(&l->in_flight) > 1 && !atomic_load(&l->claiming.sleep.hot);
}

/* One at a time: each slot that takes a job wakes the next while there are more. When jobs are
 * quick the slots awake have done the work before another is, and most need not be woken at all.
 * With the mutex held. */
static void wake_one(lane *l)
{
    if (!l->first_ready || l->idle == 0 || l->waking)
        return;
    l->waking = true;
    pthread_cond_signal(&l->work);
}

static void make_ready(lane *l, job *j)
{
    if (l->last_ready)
        l->last_ready->next_ready = j;
    else
        l->first_ready = j;
    l->last_ready = j;
    atomic_fetch_add(&l->ready, 1);
}

void lane_add(lane *l, job *const *jobs, size_t n)
{
    pthread_mutex_lock(&l->mutex);
    bool may_start = !l->giving_back;
    for (size_t i = 0; i < n; i++) {
        job *j = jobs[i];
        j->next = l->jobs;
        if (l->jobs)
            l->jobs->prev = j;
        l->jobs = j;
        if (may_start)
            make_ready(l, j);
        else
            j->stage = JOB_RETURNED;
    }
    atomic_fetch_add(&l->in_flight, n);
    wake_one(l);
    pthread_mutex_unlock(&l->mutex);
    for (size_t i = 0; i < n && !may_start; i++)
        l->ops->give_back(jobs[i]);
}

void lane_end(job *j)
{
    lane *l = j->lane;

    pthread_mutex_lock(&l->mutex);
    if (j->prev)
        j->prev->next = j->next;
    else
        l->jobs = j->next;
    if (j->next)
        j->next->prev = j->prev;
    atomic_fetch_sub(&l->in_flight, 1);
    pthread_mutex_unlock(&l->mutex);
    job_drop(j);
}

void lane_give_back(lane *l)
{
    pthread_mutex_lock(&l->mutex);
    l->giving_back = true;
    job *ready = l->first_ready;
    l->first_ready = l->last_ready = NULL;
    atomic_store(&l->ready, 0);
    for (job *j = ready; j; j = j->next_ready)
        j->stage = JOB_RETURNED;
    pthread_mutex_unlock(&l->mutex);

    while (ready) {
        job *j = ready;
        ready = j->next_ready;
        l->ops->give_back(j);
    }
}

bool lane_snapshot(lane *l, job ***ret, size_t *n)
{
    *n = 0;
    pthread_mutex_lock(&l->mutex);
    *ret = calloc(atomic_load(&l->in_flight) + 1, sizeof **ret);
    for (job *j = *ret ? l->jobs : NULL; j; j = j->next) {
        atomic_fetch_add(&j->users, 1);
        (*ret)[(*n)++] = j;
    }
    pthread_mutex_unlock(&l->mutex);
    return *ret != NULL;
}

void snapshot_done(job **jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        job_drop(jobs[i]);
    free(jobs);
}

/* ---- slots ---- */

/* The next job, begun; NULL: the slot is to end. */
static job *lane_take(lane *l)
{
    pthread_mutex_lock(&l->mutex);
    while (!l->first_ready && !l->ending) {
        l->idle++;
        pthread_cond_wait(&l->work, &l->mutex);
        l->idle--;
        l->waking = false;
    }
    job *j = l->first_ready;
    if (j) {
        l->first_ready = j->next_ready;
        if (!l->first_ready)
            l->last_ready = NULL;
        atomic_fetch_sub(&l->ready, 1);
        wake_one(l);
        if (l->ops->begin)
            l->ops->begin(j);
        j->stage = JOB_RUNNING;
    }
    pthread_mutex_unlock(&l->mutex);
    return j;
}

static void *slot_thread(void *arg)
{
    slot *s = arg;
    lane *l = s->lane;
    job *j;

    while ((j = lane_take(l)))
        l->ops->run(s, j);
    return NULL;
}

int lane_start(lane *l, const pthread_attr_t *attr)
{
    int error = 0;

    l->giving_back = l->ending = false;
    for (l->n_threads = 0; l->n_threads < (size_t)l->n_slots && !error;) {
        slot *s = &l->slots[l->n_threads];
        error = pthread_create(&s->thread, attr, slot_thread, s);
        l->n_threads += !error;
    }
    return error;
}

void lane_stop(lane *l)
{
    pthread_mutex_lock(&l->mutex);
    l->ending = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->mutex);
}

void lane_join(lane *l)
{
    for (; l->n_threads > 0; l->n_threads--)
        pthread_join(l->slots[l->n_threads - 1].thread, NULL);
}
