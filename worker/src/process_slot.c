/* A slot that runs processes: a thread with a run of its own. It waits until a checkpoint is durable; what a
 * run came to in the end is settled without it. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "processes.h"

/* How soon a timer that a run has set is looked for at the latest. */
static const double timer_seconds = 0.25;

/* Hands it to the settler and waits. False: it does not count, or the worker ends without it. */
static bool settle_and_wait(process_job *j, cb_process_settlement *s)
{
    process_domain *d = j->domain;

    j->outcome.settlement = *s;
    settler_put(&d->worker->process_settling, &j->outcome.queued);
    while (sem_wait(&j->answer) != 0)
        continue; /* a signal */
    if (j->left)
        return false;
    s->verdict = j->outcome.settlement.verdict;
    return s->verdict == CB_SETTLED || s->verdict == CB_ALREADY;
}

static void tell_stale(cb_worker *w, const process_job *j)
{
    metrics_process_stale(w->metrics, j->domain->index);
    emit(w, CB_LEVEL_WARN, "process.stale", .domain = j->domain->name,
         .process_id = j->row->process_id.text, .process_type = j->row->process_type,
         .lease_no = j->row->lease_no, .verdict = cb_verdict_name(CB_STALE),
         .hint = "its lease was lost: what this run came to changed nothing");
}

/* ---- what a run asks ---- */

static bool checkpoint(void *arg, cb_process_settlement *settlement)
{
    process_job *j = arg;
    cb_worker *w = j->domain->worker;
    int64_t asked_at = now_ns();

    settlement->verdict = CB_SETTLED;
    bool durable = settle_and_wait(j, settlement);
    if (durable) {
        atomic_store(&j->lease_end, lease_end_from(asked_at, j->domain->vt_seconds));
        metrics_process_settled(w->metrics, j->domain->index, true);
    } else if (settlement->verdict == CB_STALE) {
        tell_stale(w, j);
    }
    return durable;
}

static void step_ended(process_job *j)
{
    process_domain *d = j->domain;

    if (j->step_began == 0)
        return;
    metrics_process_step(d->worker->metrics, d->index, (now_ns() - j->step_began) / 1000);
    j->step_began = 0;
    if (j->overdue)
        d->overdue--;
    if (j->given_up)
        atomic_fetch_sub(&d->given_up, 1);
    j->overdue = j->given_up = false;
}

/* The lease goes on while a step runs, however long; it begins with enough of it to be renewed. */
static void stepping(void *arg, const char *name, int64_t timeout_ms)
{
    process_job *j = arg;
    process_domain *d = j->domain;

    pthread_mutex_lock(&d->mutex);
    step_ended(j);
    if (name) {
        snprintf(j->step, sizeof j->step, "%s", name);
        j->step_began = now_ns();
        j->step_timeout = timeout_ms * 1000000;
    }
    pthread_mutex_unlock(&d->mutex);
    if (name && atomic_load(&j->lease_end) - now_ns() < seconds_to_ns(d->vt_seconds / 2))
        renew_soon(d->worker);
}

static void waited(void *arg, bool for_command, const char *name, int64_t ms)
{
    const process_job *j = arg;
    const process_domain *d = j->domain;

    metrics_process_waited(d->worker->metrics, d->index, j->type, for_command, name, ms * 1000);
}

static bool is_lost(void *arg)
{
    const process_job *j = arg;

    return now_ns() >= atomic_load(&j->lease_end);
}

static bool is_stopping(void *arg)
{
    const process_job *j = arg;

    return atomic_load(&j->domain->worker->stopping);
}

const cb_run_host process_run_host = {
    .checkpoint = checkpoint,
    .stepping = stepping,
    .waited = waited,
    .is_lost = is_lost,
    .is_stopping = is_stopping,
};

/* ---- what a run came to ---- */

/* How a run may end, and whether its process may soon be due again. */
static const struct {
    const char *status, *event;
    cb_level level;
    bool goes_on;
} ends[] = {
    { "COMPLETED", "process.completed", CB_LEVEL_DEBUG, false },
    { "CANCELED", "process.canceled", CB_LEVEL_INFO, false },
    { "COMPENSATED", "process.compensated", CB_LEVEL_INFO, false },
    { "FAILED", "process.failed", CB_LEVEL_INFO, false },
    { "WAITING_FOR_TSQ", "process.parked", CB_LEVEL_WARN, false },
    { "WAITING_FOR_RETRY", "process.retries", CB_LEVEL_INFO, true },
    { "", "process.suspended", CB_LEVEL_DEBUG, true },
};

static size_t end_of(const char *status)
{
    size_t i = 0;

    while (i + 1 < CB_COUNT(ends) && strcmp(ends[i].status, status) != 0)
        i++;
    return i;
}

static void tell(cb_worker *w, const process_job *j, const cb_run_result *r, int64_t took)
{
    size_t end = end_of(r->status);

    if (r->misuse)
        emit(w, CB_LEVEL_ERROR, "process.misused", .domain = j->domain->name,
             .process_id = j->row->process_id.text, .process_type = j->row->process_type,
             .error = r->misuse);
    emit(w, ends[end].level, ends[end].event, .domain = j->domain->name,
         .process_id = j->row->process_id.text, .process_type = j->row->process_type,
         .status = r->status, .lease_no = j->row->lease_no, .error_code = r->error_code,
         .error = r->error_message, .count = r->steps, .took_ms = ns_to_ms(took),
         .verdict = cb_verdict_name(r->settlement.verdict));
}

/* Within one instance nobody has to be notified. */
static void hint(cb_worker *w, const process_job *j, const cb_run_result *r)
{
    for (size_t i = 0; r->sent > 0 && !w->no_commands && i < w->n_domains; i++) {
        if (j->sent_to == i || j->sent_to == w->n_domains)
            claimer_hint(&w->claims, i);
    }
    if (!ends[end_of(r->status)].goes_on)
        return;
    if (strncmp(r->status, "WAITING_FOR_", 12) == 0)
        claimer_look_within(&w->process_claims, j->domain->index, timer_seconds);
    else
        claimer_hint(&w->process_claims, j->domain->index);
}

void process_ended(cb_worker *w, process_job *j, bool left)
{
    process_domain *d = j->domain;
    cb_verdict verdict = j->outcome.settlement.verdict;
    cb_run_result *r = &j->result;

    r->settlement.verdict = verdict;
    if (!left && (verdict == CB_SETTLED || verdict == CB_ALREADY)) {
        metrics_process_settled(w->metrics, d->index, false);
        metrics_process_run(w->metrics, d->index, j->type,
                            &(process_run){ r->status, r->steps, r->replayed, j->took / 1000,
                                            j->row->now_ms - j->row->created_ms });
        tell(w, j, r, j->took);
        hint(w, j, r);
    } else if (!left && verdict == CB_STALE) {
        tell_stale(w, j);
    }
    process_domain_end(d, j);
    claimer_freed(&w->process_claims);
    if (atomic_load(&w->stopping))
        worker_changed(w);
}

/* Without memory for that it is as if this worker had died: the lease ends by itself. */
static void hand_over(cb_worker *w, process_job *j, const cb_run_result *r, int64_t took)
{
    process_domain *d = j->domain;

    pthread_mutex_lock(&d->mutex);
    j->finished = true;
    pthread_mutex_unlock(&d->mutex);
    if (!r->lost && process_job_return(j, r, took))
        settler_put(&w->process_settling, &j->outcome.queued);
    else
        process_ended(w, j, true);
}

static bool is_large(const cb_run_result *r)
{
    return r->settlement.item && process_memory_is_large(strlen(r->settlement.item));
}

/* What a large run held goes back to the system, and does not stay with this slot until its next run. */
static void let_go(process_slot *slot)
{
    cb_run_forget(slot->run);
    malloc_trim(0);
}

void *process_slot_thread(void *arg)
{
    process_slot *slot = arg;
    process_domain *d = slot->domain;
    cb_worker *w = d->worker;
    process_job *j;

    while ((j = process_domain_next(d))) {
        cb_run_result result = { 0 };
        size_t memory = process_memory_take(&w->process_memory, cb_run_memory(j->row), &w->ending);
        int64_t from = now_ns();
        cb_run_process(slot->run, j->row, &d->host, j, &result);
        stepping(j, NULL, 0);
        bool large = memory > 0 || is_large(&result);
        hand_over(w, j, &result, now_ns() - from);
        if (large)
            let_go(slot);
        process_memory_give(&w->process_memory, memory);
    }
    return NULL;
}
