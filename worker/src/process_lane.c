/* The lane of a domain's processes: their types and queues. */
#include "process_lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "processes.h"

/* ---- types and queues ---- */

static size_t count_types(const cb_worker_domain_options *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n_sets; i++)
        n += o->sets[i] ? o->sets[i]->n_processes : 0;
    return n;
}

static const char *set_of(const cb_worker_domain_options *o, const cb_process_type *type)
{
    for (size_t i = 0; i < o->n_sets; i++) {
        for (size_t k = 0; k < o->sets[i]->n_processes; k++) {
            if (o->sets[i]->processes[k] == type)
                return o->sets[i]->name;
        }
    }
    return "";
}

static bool list_type(process_lane *l, const cb_worker_domain_options *o, const cb_module *set,
                      const cb_process_type *type, cb_error *e)
{
    if (!type || !type->name || !type->domain)
        return cb_fail(e, CB_MISUSE, "set '%s' has a process type without a name or a domain",
                       set->name);
    if (strcmp(type->domain, l->lane.name) != 0)
        return cb_fail(e, CB_MISUSE,
                       "process type '%.60s' of set '%s' belongs to domain '%.47s', not to '%s', "
                       "which has that set among its handlers",
                       type->name, set->name, type->domain, l->lane.name);
    for (size_t i = 0; i < l->n_kinds; i++) {
        if (strcmp(l->listed[i]->name, type->name) == 0)
            return cb_fail(e, CB_MISUSE,
                           "domain '%s': sets '%s' and '%s' both offer process type '%.60s'",
                           l->lane.name, set_of(o, l->listed[i]), set->name, type->name);
    }
    l->listed[l->n_kinds++] = type;
    return true;
}

static bool open_types(process_lane *l, const cb_worker_options *all,
                       const cb_worker_domain_options *o, cb_error *e)
{
    l->listed = calloc(count_types(o) + 1, sizeof *l->listed);
    if (!l->listed)
        return cb_fail(e, CB_MEMORY, "no memory for process types");
    for (size_t i = 0; i < o->n_sets; i++) {
        for (size_t k = 0; k < o->sets[i]->n_processes; k++) {
            if (!list_type(l, o, o->sets[i], o->sets[i]->processes[k], e))
                return false;
        }
    }
    if (l->n_kinds == 0)
        return true;
    if (!cb_process_types_open(l->listed, l->n_kinds, all->routes, all->n_routes, all->settings,
                               all->n_settings, &l->types, e))
        return cb_fail_while(e, "opening the process types of domain '%s'", l->lane.name);
    l->kinds = cb_process_types_kinds(l->types);
    l->n_kinds = cb_process_types_count(l->types);
    return true;
}

static bool add_queue(process_lane *l, const char *first, const char *second)
{
    char *name = NULL;

    if (asprintf(&name, "%s%s", first, second) < 0)
        return false;
    for (size_t i = 0; i < l->n_queues; i++) {
        if (strcmp(l->queues[i], name) == 0) {
            free(name);
            return true;
        }
    }
    l->queues[l->n_queues++] = name;
    return true;
}

static bool name_queues(process_lane *l, const cb_worker_options *all, cb_error *e)
{
    l->queues = calloc(l->n_kinds + 2, sizeof *l->queues);
    bool ok = l->queues && add_queue(l, l->lane.name, "__processes");

    if (ok && !all->no_replies)
        ok = add_queue(l, l->lane.name, "__replies");
    for (size_t i = 0; ok && !all->no_replies && i < l->n_kinds; i++)
        ok = !l->kinds[i].reply_queue || add_queue(l, l->kinds[i].reply_queue, "");
    return ok || cb_fail(e, CB_MEMORY, "no memory for domain '%s'", l->lane.name);
}

/* ---- opening and closing ---- */

static int count_slots(const process_lane *l, const cb_worker_options *all,
                       const cb_worker_domain_options *o)
{
    if (l->n_kinds == 0 || all->no_processes)
        return 0;
    if (o->concurrent_processes)
        return o->concurrent_processes;
    return o->concurrent_messages ? o->concurrent_messages : 5;
}

bool process_lane_init(process_lane *l, cb_worker *w, size_t index,
                       const cb_worker_options *options, cb_error *e)
{
    const cb_worker_domain_options *o = &options->domains[index];

    lane_init(&l->lane, w, &process_ops, index, o);
    if (o->concurrent_processes < 0)
        return cb_fail(e, CB_MISUSE, "domain '%s' has a negative setting", l->lane.name);
    if (!open_types(l, options, o, e) || !name_queues(l, options, e))
        return false;
    int slots = count_slots(l, options, o);
    if (!lane_open_slots(&l->lane, slots, slots, e))
        return false;
    for (int i = 0; i < slots; i++) {
        if (!cb_run_open(l->types, &l->lane.slots[i].run, e))
            return false;
    }
    l->claim = (cb_process_claim_options){ .worker = w->id,
                                           .kinds = l->kinds,
                                           .n_kinds = slots > 0 ? l->n_kinds : 0,
                                           .vt_seconds = l->lane.vt_seconds,
                                           .reply_queues = (const char *const *)&l->queues[1],
                                           .n_reply_queues = l->n_queues - 1,
                                           .reply_grace_seconds = options->reply_grace_seconds };
    l->host = process_run_host;
    l->host.lease_seconds = l->lane.vt_seconds;
    l->host.renews = true;
    return true;
}

void process_lane_done(process_lane *l)
{
    for (int i = 0; i < l->lane.n_slots; i++)
        cb_run_free(l->lane.slots[i].run);
    lane_done(&l->lane);
    for (size_t i = 0; i < l->n_queues; i++)
        free(l->queues[i]);
    free(l->queues);
    cb_process_types_free(l->types);
    free(l->listed);
}

/* ---- jobs ---- */

static const cb_process_row *row_of(const job *j)
{
    return ((const process_job *)j)->row;
}

static cb_process_lease lease_of(const job *j)
{
    return (cb_process_lease){ .process_id = row_of(j)->process_id,
                               .lease_no = row_of(j)->lease_no };
}

static size_t type_of(const process_lane *l, const char *process_type)
{
    size_t i = 0;

    while (i + 1 < l->n_kinds && strcmp(l->kinds[i].process_type, process_type) != 0)
        i++;
    return i;
}

job *process_job_make(process_lane *l, claim_share *share, const cb_process_row *row,
                      int64_t lease_end)
{
    process_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    job_init(&j->job, &l->lane, share, lease_end);
    j->lane = l;
    j->row = row;
    j->type = type_of(l, row->process_type);
    j->outcome.job = j;
    sem_init(&j->answer, 0, 0);
    return &j->job;
}

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

bool process_job_return(process_job *j, const cb_run_result *result, int64_t took)
{
    j->returned = true;
    j->took = took;
    j->result = *result;
    j->outcome.settlement = result->settlement;
    j->outcome.settlement.verdict = CB_SETTLED;
    j->sent_to = domain_index(j->job.lane->worker, result);
    j->result.sent_to = NULL; /* ends with the run */
    return keep(&j->item, &j->outcome.settlement.item) &&
           keep(&j->error_code, &j->result.error_code) &&
           keep(&j->error_message, &j->result.error_message) && keep(&j->misuse, &j->result.misuse);
}

static void job_free(job *base)
{
    process_job *j = (process_job *)base;

    sem_destroy(&j->answer);
    free(j->item);
    free(j->error_code);
    free(j->error_message);
    free(j->misuse);
    free(j);
}

static void claim_free(void *claim)
{
    cb_process_claim_free(claim);
}

/* ---- leases ---- */

static bool extend(cb_worker *w, cb_db *db, job *const *jobs, size_t n, double seconds,
                   cb_lease_state *states, cb_error *e)
{
    cb_process_lease *leases = calloc(n + 1, sizeof *leases);

    if (!leases)
        return cb_fail(e, CB_AGAIN, "no memory to renew %zu leases", n);
    for (size_t i = 0; i < n; i++)
        leases[i] = lease_of(jobs[i]);
    bool asked = cb_process_extend(db, w->id, leases, n, seconds, e);
    for (size_t i = 0; asked && i < n; i++)
        states[i] = leases[i].held ? CB_LEASE_EXTENDED : CB_LEASE_GONE;
    free(leases);
    return asked;
}

static void renewed(const job *j)
{
    metrics_process_renewed(j->lane->worker->metrics, j->lane->index, 1, 0);
}

static void lost(const job *j)
{
    cb_worker *w = j->lane->worker;
    const cb_process_row *row = row_of(j);

    metrics_process_renewed(w->metrics, j->lane->index, 0, 1);
    emit(w, CB_LEVEL_WARN, "lease.lost", .domain = j->lane->name,
         .process_id = row->process_id.text, .process_type = row->process_type,
         .lease_no = row->lease_no);
}

const lane_ops process_ops = {
    .claim_free = claim_free,
    .job_free = job_free,
    .run = process_job_run,
    .give_back = process_job_give_back,
    .overdue = process_job_overdue,
    .tell_overdue = process_job_tell_overdue,
    .extend = extend,
    .renewed = renewed,
    .lost = lost,
};
