/* The watching thread: timeouts of handlers and steps. Asks nothing of the database, so that it works when that
 * does not. Timeouts are whole seconds, so looking at the next one or once a second is never late. */
#include <stdio.h>

#include "clock.h"
#include "engine.h"
#include "processes.h"

static void time_out(cb_worker *w, served *d, job *j)
{
    cb_settlement *s = &j->timeout.settlement;

    snprintf(j->timeout_text, sizeof j->timeout_text, "the handler did not return within %.0f s",
             ns_to_ms(atomic_load(&j->deadline) - j->started_at) / 1e3);
    s->outcome = CB_TRANSIENT;
    s->error_code = "HANDLER_TIMEOUT";
    s->error_message = j->timeout_text;
    s->still_running = true;
    s->retry_seconds = served_backoff(d, j->command->attempt);
    j->timed_out = j->timeout_pending = true;
    d->overdue++;
    settler_put(&w->settling, &j->timeout.queued);
}

/* With its timeout settled there is nothing to be had from the job any more: a drain may end without it.
 * True when it is the first of all. */
static bool is_stuck(cb_worker *w, served *d, job *j)
{
    if (!j->timeout_pending && !j->given_up) {
        j->given_up = true;
        atomic_fetch_add(&d->given_up, 1);
    }
    return !atomic_exchange(&w->broken, true);
}

/* Without the domain's mutex: who hears of it may well stop the worker. */
static void tell_stuck(cb_worker *w, job *j)
{
    emit(w, CB_LEVEL_ERROR, "handler.stuck", .domain = j->domain->name,
         .command_id = j->command->command_id.text, .command_type = j->command->command_type,
         .attempt = j->command->attempt, .took_ms = ns_to_ms(now_ns() - j->started_at),
         .hint = "it did not return within its timeout and kill-grace: this instance must end");
    job_drop(j);
}

/* Looks at every running job; returns when the next one is due. */
static int64_t watch_domain(cb_worker *w, served *d, int64_t now)
{
    int64_t next = INT64_MAX, grace = seconds_to_ns(w->kill_grace_seconds);
    job *stuck = NULL;

    pthread_mutex_lock(&d->mutex);
    for (job *j = d->running > 0 ? d->jobs : NULL; j; j = j->next) {
        if (j->stage != JOB_RUNNING)
            continue;
        int64_t due = atomic_load(&j->deadline) + (j->timed_out ? grace : 0);
        if (due > now) {
            next = due < next ? due : next;
        } else if (!j->timed_out) {
            time_out(w, d, j);
            next = now + grace < next ? now + grace : next;
        } else if (is_stuck(w, d, j)) {
            stuck = j;
            atomic_fetch_add(&j->users, 1);
        }
    }
    pthread_mutex_unlock(&d->mutex);
    if (stuck)
        tell_stuck(w, stuck);
    return next;
}

void *watch_thread(void *worker)
{
    cb_worker *w = worker;
    bool goes_on = true;
    int64_t bring_at = 0;

    while (goes_on) {
        int64_t now = now_ns(), next = now + seconds_to_ns(1);
        if (now >= bring_at) {
            /* They keep their places until the database takes them. */
            settler_bring_again(&w->settling);
            settler_bring_again(&w->process_settling);
            bring_at = next;
        }
        for (size_t i = 0; i < w->n_domains; i++) {
            int64_t due = watch_domain(w, &w->domains[i], now);
            int64_t step_due = processes_watch(w, &w->processes[i], now);
            due = step_due < due ? step_due : due;
            next = due < next ? due : next;
        }
        if (atomic_load(&w->stopping)) /* somebody may wait for jobs that were given up just now */
            worker_changed(w);
        goes_on = worker_pause(w, ns_to_ms(next - now) / 1e3);
    }
    return NULL;
}
