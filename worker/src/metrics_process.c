/* Counting what processes do. */
#include <stdlib.h>
#include <string.h>

#include "metrics_state.h"

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

bool metrics_processes_init(metrics_part *part)
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

void metrics_processes_done(metrics_part *part)
{
    for (size_t i = 0; part->process_types && i < part->is.n_kinds; i++) {
        for (size_t j = 0; j < METRICS_NAMES; j++) {
            free(part->process_types[i].waits[j].name);
            free(part->process_types[i].commands[j].name);
        }
    }
    free(part->process_types);
}

static void add(metrics *m, size_t domain, process_counter which, int64_t n)
{
    if (n > 0)
        atomic_fetch_add_explicit(&m->domains[domain].process_counters[which], n,
                                  memory_order_relaxed);
}

void metrics_process_claim(metrics *m, size_t domain, size_t claimed, const cb_process_look *look)
{
    add(m, domain, PROCESS_CLAIMED, (int64_t)claimed);
    add(m, domain, REPLIES_DELIVERED, look->delivered);
    add(m, domain, REPLIES_LATE, look->late);
    add(m, domain, REPLIES_DEAD_LETTERED, look->dead_lettered);
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
    add(m, domain, PROCESS_STEPS, run->steps);
    add(m, domain, PROCESS_REPLAYED, run->replayed);
}

/* The place of a name, which it may take by this. NULL: no memory. */
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
    add(m, domain, checkpoint ? PROCESS_CHECKPOINTS : PROCESS_SETTLED, 1);
}

void metrics_process_stale(metrics *m, size_t domain)
{
    add(m, domain, PROCESS_STALE, 1);
}

void metrics_process_renewed(metrics *m, size_t domain, size_t extended, size_t gone)
{
    add(m, domain, PROCESS_RENEWALS, (int64_t)extended);
    add(m, domain, PROCESS_LEASES_LOST, (int64_t)gone);
}

void metrics_process_released(metrics *m, size_t domain, size_t processes)
{
    add(m, domain, PROCESS_RELEASED, (int64_t)processes);
}

void metrics_figures_adopt(metrics *m, figures_by by, metrics_figure *figures, size_t n)
{
    pthread_mutex_lock(&m->figures[by].mutex);
    free(m->figures[by].all);
    m->figures[by].all = figures;
    m->figures[by].n = n;
    pthread_mutex_unlock(&m->figures[by].mutex);
}
