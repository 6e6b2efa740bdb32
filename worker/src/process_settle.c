/* What the settler does with checkpoints, whose slots wait for the answer, and with ends of runs. */
#include <string.h>

#include "engine.h"
#include "processes.h"

static size_t bytes_of(const queued *o)
{
    return strlen(((const process_outcome *)o)->settlement.item);
}

static bool write_all(cb_worker *w, cb_db *db, void *items, size_t n, size_t *refused, cb_error *e)
{
    return cb_process_settle_each(db, w->id, items, n, refused, e);
}

/* The slot of a checkpoint waits on a semaphore of the job's own: with the domain's mutex, everybody who is
 * answered would queue for it. The job may be gone from here on. */
static void answer(queued *q, bool left)
{
    process_job *j = ((process_outcome *)q)->job;

    if (j->returned) {
        process_job_ended(j, left);
        return;
    }
    j->left = left;
    sem_post(&j->answer);
}

static void settled(cb_worker *w, queued *o)
{
    (void)w;
    answer(o, false);
}

static void left(cb_worker *w, queued *o)
{
    (void)w;
    answer(o, true);
}

/* Once at first and then once a minute: it is brought again every second. */
static void tell_refused(cb_worker *w, queued *q, const cb_error *e)
{
    process_outcome *o = (process_outcome *)q;

    if (o->tries++ % 60 == 0)
        emit(w, CB_LEVEL_ERROR, "settle.refused", .domain = o->job->job.lane->name,
             .process_id = o->settlement.process_id.text, .error = e->message, .hint = e->hint,
             .error_code = e->sqlstate);
}

const settle_kind process_settling = {
    .item_size = sizeof(cb_process_settlement),
    .item_at = offsetof(process_outcome, settlement),
    .verdict_at = offsetof(cb_process_settlement, verdict),
    .write = write_all,
    .settled = settled,
    .tell_refused = tell_refused,
    .left = left,
    .bytes = bytes_of,
};
