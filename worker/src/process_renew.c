/* Renewing the leases of processes in flight: one call a domain, on the renewing thread's connection. */
#include <stdlib.h>

#include "clock.h"
#include "engine.h"
#include "processes.h"

static bool wants_renewal(const process_domain *d, process_job *j, bool all)
{
    int64_t end = atomic_load(&j->lease_end);

    return end != 0 && (all || end - now_ns() <= seconds_to_ns(d->vt_seconds * 2 / 3));
}

static void is_gone(cb_worker *w, process_job *j)
{
    process_domain *d = j->domain;

    pthread_mutex_lock(&d->mutex);
    bool lost = !j->finished; /* else it was settled meanwhile, or the verdict tells */
    if (lost)
        atomic_store(&j->lease_end, 0);
    pthread_mutex_unlock(&d->mutex);
    if (!lost)
        return;
    metrics_process_renewed(w->metrics, d->index, 0, 1);
    emit(w, CB_LEVEL_WARN, "lease.lost", .domain = d->name, .process_id = j->row->process_id.text,
         .process_type = j->row->process_type, .lease_no = j->row->lease_no);
}

static bool extend(cb_worker *w, process_domain *d, process_job **jobs, cb_process_lease *leases,
                   size_t n)
{
    db_link *link = &w->links[LINK_RENEW];
    int64_t asked_at = now_ns(), end = lease_end_from(asked_at, d->vt_seconds);
    size_t held = 0;
    cb_error e = { 0 };

    if (!cb_process_extend(link->db, w->id, leases, n, d->vt_seconds, &e)) {
        if (!is_refusal(link->db, &e)) {
            link_failed(link, &e, "renew");
            return false;
        }
        trouble_add(&w->renewals.process_refused, &e, "renew", "database.refused");
        return true;
    }
    link_worked(link);
    trouble_end(&w->renewals.process_refused);
    for (size_t i = 0; i < n; i++) {
        held += leases[i].held;
        if (leases[i].held)
            atomic_store(&jobs[i]->lease_end, end);
        else
            is_gone(w, jobs[i]);
    }
    metrics_process_renewed(w->metrics, d->index, held, 0);
    return true;
}

static bool renew_domain(cb_worker *w, process_domain *d, bool all)
{
    process_job **jobs;
    size_t n, wanted = 0;

    if (atomic_load(&d->in_flight) == 0)
        return true;
    if (!process_domain_snapshot(d, &jobs, &n))
        return false;
    cb_process_lease *leases = calloc(n + 1, sizeof *leases);
    for (size_t i = 0; leases && i < n; i++) {
        process_job *j = jobs[i];
        if (!wants_renewal(d, j, all))
            continue;
        jobs[i] = jobs[wanted];
        jobs[wanted] = j;
        leases[wanted++] =
            (cb_process_lease){ .process_id = j->row->process_id, .lease_no = j->row->lease_no };
    }
    bool ok = leases && (wanted == 0 || extend(w, d, jobs, leases, wanted));
    free(leases);
    process_snapshot_done(jobs, n);
    return ok;
}

bool processes_renew(cb_worker *w, bool all)
{
    bool ok = true;
    size_t in_flight = 0;

    for (size_t i = 0; ok && i < w->n_domains; i++) {
        in_flight += atomic_load(&w->processes[i].in_flight);
        ok = renew_domain(w, &w->processes[i], all);
    }
    if (in_flight == 0)
        trouble_end(&w->renewals.process_refused);
    return ok;
}
