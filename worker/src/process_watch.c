/* Watching the steps of processes. The run itself settles a step that returned too late; here it is
 * counted while it runs, and one that does not return ends the instance, as a handler would. */
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "processes.h"

/* Without the domain's mutex: who hears of it may well stop the worker. */
static void tell(cb_worker *w, process_job *j, const char *step, bool stuck)
{
    emit(w, stuck ? CB_LEVEL_ERROR : CB_LEVEL_WARN, stuck ? "step.stuck" : "process.step_overdue",
         .domain = j->domain->name, .process_id = j->row->process_id.text,
         .process_type = j->row->process_type, .step = step, .lease_no = j->row->lease_no,
         .hint = stuck
                     ? "it did not return within its timeout and kill-grace: this instance must end"
                     : "it runs past its timeout; its result will not count");
    process_job_drop(j);
}

/* With the mutex held. True when there is something to tell. */
static bool look_at(cb_worker *w, process_domain *d, process_job *j, int64_t now, int64_t *next)
{
    int64_t grace = seconds_to_ns(w->kill_grace_seconds);
    int64_t due = j->step_began + j->step_timeout + (j->overdue ? grace : 0);

    if (j->step_began == 0 || j->given_up)
        return false;
    if (due > now) {
        *next = due < *next ? due : *next;
        return false;
    }
    if (!j->overdue) {
        j->overdue = true;
        d->overdue++;
        *next = now + grace < *next ? now + grace : *next;
        return true;
    }
    j->given_up = true;
    atomic_fetch_add(&d->given_up, 1);
    return !atomic_exchange(&w->broken, true);
}

int64_t processes_watch(cb_worker *w, process_domain *d, int64_t now)
{
    int64_t next = INT64_MAX;
    process_job *found = NULL;
    char step[sizeof found->step] = "";
    bool stuck = false;

    pthread_mutex_lock(&d->mutex);
    for (process_job *j = d->jobs; j && !found; j = j->next) {
        if (!look_at(w, d, j, now, &next))
            continue;
        found = j;
        stuck = j->given_up;
        memcpy(step, j->step, sizeof step);
        atomic_fetch_add(&j->users, 1);
    }
    pthread_mutex_unlock(&d->mutex);
    if (!found)
        return next;
    tell(w, found, step, stuck);
    return now; /* there may be more to tell */
}
