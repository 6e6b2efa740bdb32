/* Counting. Relaxed atomics throughout: a scrape may see one counter a moment before another. */
#include "metrics.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "metrics_state.h"

const char *const connection_names[CONNECTIONS] = {
    [CONNECTION_CLAIM] = "claim",     [CONNECTION_SETTLE] = "settle",
    [CONNECTION_RENEW] = "renew",     [CONNECTION_LISTEN] = "listen",
    [CONNECTION_KEEP] = "keep",       [CONNECTION_EFFECT] = "effect",
    [CONNECTION_PROCESS] = "process", [CONNECTION_PROCESS_SETTLE] = "process_settle",
};

static const char unknown_type[] = "unknown";

const char *const metrics_statuses[METRICS_STATUSES] = {
    "PENDING",
    "EXECUTING",
    "WAITING_FOR_REPLY",
    "WAITING_FOR_ASYNC",
    "WAITING_FOR_RETRY",
    "WAITING_FOR_TSQ",
    "COMPENSATING",
    "COMPENSATED",
    "COMPLETED",
    "CANCELED",
    "FAILED",
};
enum {
    FIRST_END = 7 /* of the statuses above: it and those behind it are final */
};

/* ---- life ---- */

static bool processes_init(metrics_part *part)
{
    histogram_init(&part->timer_lag, &histogram_wait);
    histogram_init(&part->step, &histogram_run);
    part->process_types = calloc(part->is.n_kinds + 1, sizeof *part->process_types);
    for (size_t i = 0; part->process_types && i < part->is.n_kinds; i++) {
        metrics_process_type *t = &part->process_types[i];
        histogram_init(&t->run, &histogram_run);
        histogram_init(&t->age, &histogram_wait);
        for (size_t j = 0; j < METRICS_NAMES; j++) {
            histogram_init(&t->waits[j].waited, &histogram_wait);
            histogram_init(&t->commands[j].waited, &histogram_wait);
        }
    }
    return part->process_types != NULL;
}

static void processes_done(metrics_part *part)
{
    for (size_t i = 0; part->process_types && i < part->is.n_kinds; i++) {
        for (size_t j = 0; j < METRICS_NAMES; j++) {
            free(part->process_types[i].waits[j].name);
            free(part->process_types[i].commands[j].name);
        }
    }
    free(part->process_types);
}

static bool part_init(metrics_part *part, const metrics_domain *domain)
{
    int offered = registry_find(domain->types, unknown_type);

    part->is = *domain;
    atomic_init(&part->depth, -1);
    histogram_init(&part->wait, &histogram_wait);
    part->unknown = offered < 0 ? domain->types->n : (size_t)offered;
    part->n_types = domain->types->n + (offered < 0);
    part->types = calloc(part->n_types, sizeof *part->types);
    if (!part->types || !processes_init(part))
        return false;
    for (size_t i = 0; i < part->n_types; i++) {
        metrics_type *type = &part->types[i];
        type->name = i < domain->types->n ? domain->types->entries[i].command_type : unknown_type;
        histogram_init(&type->run, &histogram_run);
    }
    return true;
}

bool metrics_open(const metrics_domain *domains, size_t n, metrics **ret, cb_error *e)
{
    metrics *m = calloc(1, sizeof *m);
    bool fine = m != NULL;

    if (fine) {
        m->domains = calloc(n + 1, sizeof *m->domains);
        m->n = m->domains ? n : 0;
        fine = m->domains != NULL;
    }
    for (size_t i = 0; fine && i < n; i++)
        fine = part_init(&m->domains[i], &domains[i]);
    if (!fine) {
        metrics_free(m);
        return fail_memory(e);
    }
    for (size_t i = 0; i < CONNECTIONS; i++)
        atomic_init(&m->connections[i].up, -1);
    histogram_init(&m->settle_size, &histogram_items);
    histogram_init(&m->settle_duration, &histogram_brief);
    for (size_t i = 0; i < FIGURES; i++)
        pthread_mutex_init(&m->figures[i].mutex, NULL);
    pthread_mutex_init(&m->fleet.mutex, NULL);
    *ret = m;
    return true;
}

void metrics_free(metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++) {
        free(m->domains[i].types);
        processes_done(&m->domains[i]);
    }
    free(m->domains);
    for (size_t i = 0; i < FIGURES; i++)
        free(m->figures[i].all);
    free(m->fleet.all);
    free(m);
}

/* ---- counting ---- */

static void add(metrics_value *value, int64_t n)
{
    if (n > 0)
        atomic_fetch_add_explicit(value, n, memory_order_relaxed);
}

static void set(metrics_value *value, int64_t n)
{
    atomic_store_explicit(value, n, memory_order_relaxed);
}

static metrics_type *type_of(metrics *m, size_t domain, int type)
{
    metrics_part *part = &m->domains[domain];

    return &part->types[type < 0 ? part->unknown : (size_t)type];
}

void metrics_claim(metrics *m, size_t domain, size_t claimed, size_t poisoned, size_t exhausted)
{
    metrics_value *counters = m->domains[domain].counters;

    add(&counters[DOMAIN_CLAIMED], (int64_t)claimed);
    add(&counters[DOMAIN_POISONED], (int64_t)poisoned);
    add(&counters[DOMAIN_EXHAUSTED], (int64_t)exhausted);
}

void metrics_outcome(metrics *m, size_t domain, int type, cb_outcome outcome, cb_verdict verdict,
                     const char *error_code)
{
    metrics_value *counters = m->domains[domain].counters;

    if (verdict == CB_BUSY || (size_t)outcome >= METRICS_OUTCOMES)
        return; /* not final: it comes again */
    if (error_code && strcmp(error_code, "HANDLER_TIMEOUT") == 0)
        add(&counters[DOMAIN_TIMEOUTS], 1);
    if (verdict == CB_STALE) {
        add(&counters[DOMAIN_STALE], 1);
        return; /* whoever has the fence now brings the outcome that counts */
    }
    add(&counters[DOMAIN_SETTLED], 1);
    add(&type_of(m, domain, type)->outcomes[outcome], 1);
}

void metrics_run(metrics *m, size_t domain, int type, int64_t took_us)
{
    histogram_add(&type_of(m, domain, type)->run, took_us);
}

void metrics_wait(metrics *m, size_t domain, int64_t waited_us)
{
    histogram_add(&m->domains[domain].wait, waited_us);
}

void metrics_settle(metrics *m, size_t items, int64_t took_us)
{
    histogram_add(&m->settle_size, (int64_t)items);
    histogram_add(&m->settle_duration, took_us);
}

void metrics_refused(metrics *m, size_t items)
{
    add(&m->counters[WORKER_REFUSED], (int64_t)items);
}

void metrics_renewed(metrics *m, size_t domain, size_t extended, size_t gone)
{
    add(&m->domains[domain].counters[DOMAIN_RENEWALS], (int64_t)extended);
    add(&m->domains[domain].counters[DOMAIN_LEASES_LOST], (int64_t)gone);
}

void metrics_released(metrics *m, size_t domain, size_t commands)
{
    add(&m->domains[domain].counters[DOMAIN_RELEASED], (int64_t)commands);
}

void metrics_reconnect(metrics *m, connection_name which)
{
    add(&m->connections[which].reconnects, 1);
}

void metrics_connection_up(metrics *m, connection_name which, bool up)
{
    set(&m->connections[which].up, up);
}

void metrics_notified(metrics *m)
{
    add(&m->counters[WORKER_NOTIFIED], 1);
}

void metrics_sample(metrics *m, size_t domain, const cb_queue_sample *sample)
{
    set(&m->domains[domain].depth, sample->depth);
    set(&m->domains[domain].oldest_due_us, (int64_t)(sample->oldest_due_seconds * 1e6));
}

void metrics_housekeeping(metrics *m, int64_t batches_closed, int64_t rows_purged,
                          int64_t messages_restored, int64_t replies_restored)
{
    add(&m->counters[WORKER_BATCHES_CLOSED], batches_closed);
    add(&m->counters[WORKER_ROWS_PURGED], rows_purged);
    add(&m->counters[WORKER_MESSAGES_RESTORED], messages_restored);
    add(&m->counters[WORKER_REPLIES_RESTORED], replies_restored);
}

int64_t metrics_settled(const metrics *m, size_t domain)
{
    return metrics_get(&m->domains[domain].counters[DOMAIN_SETTLED]);
}

/* ---- counting processes ---- */

static void count_process(metrics *m, size_t domain, process_counter which, int64_t n)
{
    add(&m->domains[domain].process_counters[which], n);
}

void metrics_process_claim(metrics *m, size_t domain, size_t claimed, const cb_process_look *look)
{
    count_process(m, domain, PROCESS_CLAIMED, (int64_t)claimed);
    count_process(m, domain, REPLIES_DELIVERED, look->delivered);
    count_process(m, domain, REPLIES_LATE, look->late);
    count_process(m, domain, REPLIES_DEAD_LETTERED, look->dead_lettered);
}

void metrics_timer_lag(metrics *m, size_t domain, int64_t waited_us)
{
    histogram_add(&m->domains[domain].timer_lag, waited_us);
}

void metrics_process_run(metrics *m, size_t domain, size_t type, const process_run *run)
{
    metrics_process_type *t = &m->domains[domain].process_types[type];
    size_t status = 0;

    while (status + 1 < METRICS_STATUSES && strcmp(metrics_statuses[status], run->status) != 0)
        status++;
    atomic_fetch_add_explicit(&t->runs[status], 1, memory_order_relaxed);
    histogram_add(&t->run, run->took_us);
    if (status >= FIRST_END)
        histogram_add(&t->age, run->age_ms * 1000 + run->took_us);
    count_process(m, domain, PROCESS_STEPS, run->steps);
    count_process(m, domain, PROCESS_REPLAYED, run->replayed);
}

/* The place of a name, which it may take by this. NULL: out of memory. */
static metrics_named *place_of(metrics_named *places, const char *name)
{
    for (size_t i = 0; i < METRICS_NAMES; i++) {
        const char *wanted = i + 1 < METRICS_NAMES ? name : "other";
        char *taken = atomic_load(&places[i].name), *mine;
        if (!taken) {
            if (!(mine = strdup(wanted)))
                return NULL;
            if (atomic_compare_exchange_strong(&places[i].name, &taken, mine))
                return &places[i];
            free(mine); /* somebody was faster: `taken` is theirs */
        }
        if (strcmp(taken, wanted) == 0)
            return &places[i];
    }
    return NULL;
}

void metrics_process_waited(metrics *m, size_t domain, size_t type, bool for_command,
                            const char *name, int64_t waited_us)
{
    metrics_process_type *t = &m->domains[domain].process_types[type];
    metrics_named *place = place_of(for_command ? t->commands : t->waits, name);

    if (place)
        histogram_add(&place->waited, waited_us);
}

void metrics_process_step(metrics *m, size_t domain, int64_t took_us)
{
    histogram_add(&m->domains[domain].step, took_us);
}

void metrics_process_settled(metrics *m, size_t domain, bool checkpoint)
{
    count_process(m, domain, checkpoint ? PROCESS_CHECKPOINTS : PROCESS_SETTLED, 1);
}

void metrics_process_stale(metrics *m, size_t domain)
{
    count_process(m, domain, PROCESS_STALE, 1);
}

void metrics_process_renewed(metrics *m, size_t domain, size_t extended, size_t gone)
{
    count_process(m, domain, PROCESS_RENEWALS, (int64_t)extended);
    count_process(m, domain, PROCESS_LEASES_LOST, (int64_t)gone);
}

void metrics_process_released(metrics *m, size_t domain, size_t processes)
{
    count_process(m, domain, PROCESS_RELEASED, (int64_t)processes);
}

void metrics_figures_adopt(metrics *m, figures_by by, metrics_figure *figures, size_t n)
{
    pthread_mutex_lock(&m->figures[by].mutex);
    free(m->figures[by].all);
    m->figures[by].all = figures;
    m->figures[by].n = n;
    pthread_mutex_unlock(&m->figures[by].mutex);
}

void metrics_fleet_adopt(metrics *m, metrics_fleet_figure *figures, size_t n)
{
    pthread_mutex_lock(&m->fleet.mutex);
    free(m->fleet.all);
    m->fleet.all = figures;
    m->fleet.n = n;
    pthread_mutex_unlock(&m->fleet.mutex);
}
