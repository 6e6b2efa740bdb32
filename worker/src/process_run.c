/* A slot that runs processes: a thread with a run of its own. It waits until a checkpoint is
 * durable; what a run came to in the end is settled without it. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"

/* How soon a timer that a run has set is looked for at the latest. */
static const double timer_seconds = 0.25;

/* Hands it to the settler and waits. False: it does not count, or the worker ends without it. */
static bool settle_and_wait(process_job *j, cb_process_settlement *s)
{
    j->outcome.settlement = *s;
    settler_put(&j->outcome.outcome);
    while (sem_wait(&j->answer) != 0)
        continue; /* a signal */
    if (j->left)
        return false;
    s->verdict = j->outcome.settlement.verdict;
    return s->verdict == CB_SETTLED || s->verdict == CB_ALREADY;
}

static void process_tell_stale(cb_worker *w, const process_job *j)
{
    metrics_process_stale(w->metrics, j->job.lane->index);
    emit(w, CB_LEVEL_WARN, "process.stale", .domain = j->job.lane->name,
         .process_id = j->row->process_id.text, .process_type = j->row->process_type,
         .lease_no = j->row->lease_no, .verdict = cb_verdict_name(CB_STALE),
         .hint = "its lease was lost: what this run came to changed nothing");
}

/* ---- what a run asks ---- */

static bool process_checkpoint(void *arg, cb_process_settlement *settlement)
{
    process_job *j = arg;
    cb_worker *w = j->job.lane->worker;
    int64_t asked_at = now_ns();

    settlement->verdict = CB_SETTLED;
    bool durable = settle_and_wait(j, settlement);
    if (durable) {
        atomic_store(&j->job.lease_end, lease_end_from(asked_at, j->job.lane->vt_seconds));
        metrics_process_settled(w->metrics, j->job.lane->index, true);
    } else if (settlement->verdict == CB_STALE) {
        process_tell_stale(w, j);
    }
    return durable;
}

/* The lease goes on while a step runs, however long; it begins with enough of it to be renewed. */
static void process_stepping(void *arg, const char *name, int64_t timeout_ms)
{
    process_job *j = arg;
    lane *l = j->job.lane;

    pthread_mutex_lock(&l->mutex);
    if (j->job.runs) {
        metrics_process_step(l->worker->metrics, l->index, (now_ns() - j->job.began) / 1000);
        watch_end(&j->job);
    }
    if (name)
        watch_begin(&j->job, name, timeout_ms * 1000000);
    pthread_mutex_unlock(&l->mutex);
    if (name && atomic_load(&j->job.lease_end) - now_ns() < seconds_to_ns(l->vt_seconds / 2))
        renew_soon(l->worker);
}

static void process_waited(void *arg, bool for_command, const char *name, int64_t ms)
{
    const process_job *j = arg;
    const lane *l = j->job.lane;

    metrics_process_waited(l->worker->metrics, l->index, j->type, for_command, name, ms * 1000);
}

static bool process_is_lost(void *arg)
{
    const process_job *j = arg;

    return now_ns() >= atomic_load(&j->job.lease_end);
}

static bool process_is_stopping(void *arg)
{
    const process_job *j = arg;

    return atomic_load(&j->job.lane->worker->stopping);
}

const cb_run_host process_run_host = {
    .checkpoint = process_checkpoint,
    .stepping = process_stepping,
    .waited = process_waited,
    .is_lost = process_is_lost,
    .is_stopping = process_is_stopping,
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

static void process_tell(cb_worker *w, const process_job *j, const cb_run_result *r, int64_t took)
{
    size_t end = end_of(r->status);

    if (r->misuse)
        emit(w, CB_LEVEL_ERROR, "process.misused", .domain = j->job.lane->name,
             .process_id = j->row->process_id.text, .process_type = j->row->process_type,
             .error = r->misuse);
    emit(w, ends[end].level, ends[end].event, .domain = j->job.lane->name,
         .process_id = j->row->process_id.text, .process_type = j->row->process_type,
         .status = r->status, .lease_no = j->row->lease_no, .error_code = r->error_code,
         .error = r->error_message, .count = r->steps, .took_ms = ns_to_ms(took),
         .verdict = cb_verdict_name(r->settlement.verdict));
}

/* Within one instance nobody has to be notified. */
static void process_hint(cb_worker *w, const process_job *j, const cb_run_result *r)
{
    for (size_t i = 0; r->sent > 0 && !w->no_commands && i < w->n_domains; i++) {
        if (j->sent_to == i || j->sent_to == w->n_domains)
            claimer_hint(worker_lane(w, COMMANDS, i));
    }
    if (!ends[end_of(r->status)].goes_on)
        return;
    if (strncmp(r->status, "WAITING_FOR_", 12) == 0)
        claimer_look_within(j->job.lane, timer_seconds);
    else
        claimer_hint(j->job.lane);
}

/* The end of the run has its verdict. */
static void process_run_settled(process_job *j)
{
    lane *l = j->job.lane;
    cb_worker *w = l->worker;
    cb_verdict verdict = j->outcome.settlement.verdict;
    cb_run_result *r = &j->result;

    r->settlement.verdict = verdict;
    if (verdict == CB_SETTLED || verdict == CB_ALREADY) {
        metrics_process_settled(w->metrics, l->index, false);
        metrics_process_run(w->metrics, l->index, j->type,
                            &(process_run){ r->status, r->steps, r->replayed, j->took / 1000,
                                            j->row->now_ms - j->row->created_ms });
        process_tell(w, j, r, j->took);
        process_hint(w, j, r);
    } else if (verdict == CB_STALE) {
        process_tell_stale(w, j);
    }
    lane_end(&j->job);
}

/* Nobody will write the end of the run: as if this worker had died, its lease ends by itself. */
static void process_run_left(process_job *j)
{
    cb_worker *w = j->job.lane->worker;

    lane_end(&j->job);
    claimer_freed(&w->claims[PROCESSES]);
    if (atomic_load(&w->stopping))
        worker_changed(w);
}

/* The slot of a checkpoint waits on a semaphore of the job's own: with the lane's mutex, everybody
 * who is answered would queue for it. The job may be gone from here on. */
static void process_answer(process_job *j, bool left)
{
    j->left = left;
    sem_post(&j->answer);
}

bool process_outcome_settled(outcome *o)
{
    process_job *j = (process_job *)o->job;

    if (!j->returned) {
        process_answer(j, false);
        return false;
    }
    process_run_settled(j);
    return true;
}

void process_outcome_left(outcome *o)
{
    process_job *j = (process_job *)o->job;

    if (j->returned)
        process_run_left(j);
    else
        process_answer(j, true);
}

size_t process_outcome_bytes(const outcome *o)
{
    return cb_process_item_bytes(((const process_outcome *)o)->settlement.item);
}

bool process_outcomes_settle(cb_worker *w, cb_db *db, void *items, size_t n, size_t *refused,
                             cb_error *e)
{
    return cb_process_settle_each(db, w->id, items, n, refused, e);
}

void process_outcome_tell_refused(const outcome *o, const cb_error *e)
{
    const lane *l = o->job->lane;

    emit(l->worker, CB_LEVEL_ERROR, "settle.refused", .domain = l->name,
         .process_id = ((const process_outcome *)o)->settlement.process_id.text,
         .error = e->message, .hint = e->hint, .error_code = e->sqlstate);
}

/* ---- running ---- */

static bool keep(char **to, const char **from)
{
    *to = *from ? strdup(*from) : NULL;
    bool kept = *to || !*from;
    *from = *to;
    return kept;
}

/* Where its commands went, as an index; n_domains: to several. */
static size_t domain_index(const cb_worker *w, const cb_run_result *result)
{
    size_t i = 0;

    if (!result->sent_to)
        return w->n_domains;
    while (i < w->n_domains && strcmp(w->domains[i].name, result->sent_to) != 0)
        i++;
    return i < w->n_domains ? i : SIZE_MAX;
}

/* Keeps what the run came to, which until now was borrowed from the run. False: out of memory. */
static bool keep_result(process_job *j, cb_run *run, const cb_run_result *result, int64_t took)
{
    j->returned = true;
    j->took = took;
    j->result = *result;
    j->outcome.settlement = result->settlement;
    j->outcome.settlement.verdict = CB_SETTLED;
    j->sent_to = domain_index(j->job.lane->worker, result);
    j->result.sent_to = NULL; /* ends with the run */
    j->item = cb_run_take_item(run);
    return keep(&j->error_code, &j->result.error_code) &&
           keep(&j->error_message, &j->result.error_message) && keep(&j->misuse, &j->result.misuse);
}

/* Without memory for its result nobody can write it. */
static void process_hand_over(process_job *j, cb_run *run, const cb_run_result *r, int64_t took)
{
    lane *l = j->job.lane;

    pthread_mutex_lock(&l->mutex);
    j->job.stage = JOB_RETURNED;
    pthread_mutex_unlock(&l->mutex);
    if (!r->lost && keep_result(j, run, r, took))
        settler_put(&j->outcome.outcome);
    else
        process_run_left(j);
}

static bool is_large(const cb_run_result *r)
{
    return r->settlement.item && process_memory_is_large(cb_process_item_bytes(r->settlement.item));
}

/* What a large run held goes back to the system, and does not stay with this slot until its next
 * run. */
static void let_go(slot *s)
{
    cb_run_forget(s->run);
    malloc_trim(0);
}

void process_job_run(slot *s, job *base)
{
    process_lane *l = (process_lane *)s->lane;
    process_job *j = (process_job *)base;
    cb_worker *w = s->lane->worker;
    cb_run_result result = { 0 };
    size_t memory = process_memory_take(&w->process_memory, cb_run_memory(j->row), &w->ending);
    int64_t from = now_ns();

    cb_run_process(s->run, j->row, &l->host, j, &result);
    process_stepping(j, NULL, 0);
    bool large = memory > 0 || is_large(&result);
    process_hand_over(j, s->run, &result, now_ns() - from);
    if (large)
        let_go(s);
    process_memory_give(&w->process_memory, memory);
}

/* The database still has it for ours: the claimer's next look releases it. */
void process_job_give_back(job *j)
{
    cb_worker *w = j->lane->worker;

    lane_end(j);
    claimer_sweep(&w->claims[PROCESSES]);
}

/* ---- timeouts ---- */

/* Nothing else is to be done: the run itself settles a step that returned too late. */
void process_job_tell_overdue(const job *base, const char *step, bool stuck)
{
    const cb_process_row *row = ((const process_job *)base)->row;

    emit(base->lane->worker, stuck ? CB_LEVEL_ERROR : CB_LEVEL_WARN,
         stuck ? "step.stuck" : "process.step_overdue", .domain = base->lane->name,
         .process_id = row->process_id.text, .process_type = row->process_type, .step = step,
         .lease_no = row->lease_no,
         .hint = stuck
                     ? "it did not return within its timeout and kill-grace: this instance must end"
                     : "it runs past its timeout; its result will not count");
}
