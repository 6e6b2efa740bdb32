/* What a scrape tells of processes and replies. */
#include "scrape.h"

static const char type_label[] = "process_type";

static void total(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        scrape_domain(s, f, i);
        scrape_integer(s, metrics_get(&s->m->domains[i].process_counters[f->which]));
    }
}

static void slots(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        scrape_domain(s, f, i);
        scrape_integer(s, s->m->domains[i].is.process_slots);
    }
}

static void runs(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        const metrics_part *part = &s->m->domains[i];
        for (size_t j = 0; j < part->is.n_kinds * METRICS_STATUSES; j++) {
            size_t type = j / METRICS_STATUSES, status = j % METRICS_STATUSES;
            scrape_domain(s, f, i);
            scrape_label(s, ",", type_label, part->is.kinds[type].process_type);
            scrape_label(s, ",", "status", metrics_statuses[status]);
            scrape_integer(s, metrics_get(&part->process_types[type].runs[status]));
        }
    }
}

/* A histogram of metrics_process_type. */
static void type_histogram(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        const metrics_part *part = &s->m->domains[i];
        for (size_t j = 0; j < part->is.n_kinds; j++) {
            const char *t = (const char *)&part->process_types[j];
            scrape_histogram(s, f, (const histogram *)(const void *)(t + f->which),
                             &(scrape_labels){ .domain = part->is.domain,
                                               .key = type_label,
                                               .value = part->is.kinds[j].process_type });
        }
    }
}

/* A histogram of metrics_part. */
static void domain_histogram(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        const metrics_part *part = &s->m->domains[i];
        const char *at = (const char *)part + f->which;
        scrape_histogram(s, f, (const histogram *)(const void *)at,
                         &(scrape_labels){ .domain = part->is.domain });
    }
}

/* The metrics_named of metrics_process_type. */
static void named_histograms(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        const metrics_part *part = &s->m->domains[i];
        for (size_t j = 0; j < part->is.n_kinds * METRICS_NAMES; j++) {
            size_t type = j / METRICS_NAMES;
            const char *t = (const char *)&part->process_types[type] + f->which;
            const metrics_named *named = (const metrics_named *)(const void *)t + j % METRICS_NAMES;
            const char *name = atomic_load(&named->name);
            if (name)
                scrape_histogram(s, f, &named->waited,
                                 &(scrape_labels){ .domain = part->is.domain,
                                                   .key = type_label,
                                                   .value = part->is.kinds[type].process_type,
                                                   .key2 = "name",
                                                   .value2 = name });
        }
    }
}

static void figure_name(const scrape *s, const family *f, figures_by by,
                        const metrics_figure *figure)
{
    static const char *const labels[FIGURES] = {
        [FIGURES_BY_CODE] = "error_code", [FIGURES_BY_WAIT] = "wait"
    };

    fprintf(s->out, "%s%s", SCRAPE_PREFIX, f->name);
    scrape_label(s, "{", type_label, figure->process_type);
    scrape_label(s, ",", "status", figure->status);
    scrape_label(s, ",", labels[by], figure->by);
}

static void counts(const scrape *s, const family *f, figures_by by)
{
    metrics *m = (metrics *)s->m; /* the lock is not part of what a scrape leaves as it was */

    pthread_mutex_lock(&m->figures[by].mutex);
    for (size_t i = 0; i < m->figures[by].n; i++) {
        figure_name(s, f, by, &m->figures[by].all[i]);
        scrape_integer(s, m->figures[by].all[i].count);
    }
    pthread_mutex_unlock(&m->figures[by].mutex);
}

/* A field of metrics_figure in microseconds, of those where it is not 0. */
static void seconds(const scrape *s, const family *f, figures_by by)
{
    metrics *m = (metrics *)s->m;

    pthread_mutex_lock(&m->figures[by].mutex);
    for (size_t i = 0; i < m->figures[by].n; i++) {
        const char *figure = (const char *)&m->figures[by].all[i];
        int64_t us = *(const int64_t *)(const void *)(figure + f->which);
        if (us <= 0)
            continue;
        figure_name(s, f, by, &m->figures[by].all[i]);
        fputc('}', s->out);
        scrape_seconds(s, us);
    }
    pthread_mutex_unlock(&m->figures[by].mutex);
}

static void counts_by_code(const scrape *s, const family *f)
{
    counts(s, f, FIGURES_BY_CODE);
}

static void counts_by_wait(const scrape *s, const family *f)
{
    counts(s, f, FIGURES_BY_WAIT);
}

static void seconds_by_code(const scrape *s, const family *f)
{
    seconds(s, f, FIGURES_BY_CODE);
}

static void seconds_by_wait(const scrape *s, const family *f)
{
    seconds(s, f, FIGURES_BY_WAIT);
}

const family process_families[] = {
    { "process_slots", "gauge", "Processes that can run at once.", slots, 0 },
    { "processes_in_flight", "gauge", "Processes claimed and not yet settled.",
      scrape_at_the_moment, offsetof(metrics_now, processes) },
    { "process_steps_overdue", "gauge", "Steps that run past their timeout.", scrape_at_the_moment,
      offsetof(metrics_now, steps_overdue) },
    { "processes_claimed_total", "counter", "Processes claimed.", total, PROCESS_CLAIMED },
    { "process_runs_total", "counter", "Runs, by the status that they left their process with.",
      runs, 0 },
    { "process_run_duration_seconds", "histogram", "How long one run took.", type_histogram,
      offsetof(metrics_process_type, run) },
    { "process_duration_seconds", "histogram", "From the start of a process to its end.",
      type_histogram, offsetof(metrics_process_type, age) },
    { "process_step_duration_seconds", "histogram", "How long one attempt of a step took.",
      domain_histogram, offsetof(metrics_part, step) },
    { "process_steps_total", "counter", "Steps run, compensations too.", total, PROCESS_STEPS },
    { "process_records_replayed_total", "counter", "Records that runs passed on their way.", total,
      PROCESS_REPLAYED },
    { "process_checkpoints_total", "counter", "Checkpoints made durable in the middle of a run.",
      total, PROCESS_CHECKPOINTS },
    { "process_settles_total", "counter", "Ends of runs made durable.", total, PROCESS_SETTLED },
    { "process_stale_total", "counter",
      "Checkpoints and ends of runs that came after their lease was lost and changed nothing.",
      total, PROCESS_STALE },
    { "process_renewals_total", "counter", "Leases of processes renewed.", total,
      PROCESS_RENEWALS },
    { "process_leases_lost_total", "counter", "Leases of processes that a renewal found lost.",
      total, PROCESS_LEASES_LOST },
    { "process_released_total", "counter", "Processes given back that were claimed but not begun.",
      total, PROCESS_RELEASED },
    { "process_timer_lag_seconds", "histogram", "From a process being due to its claim.",
      domain_histogram, offsetof(metrics_part, timer_lag) },
    { "replies_delivered_total", "counter",
      "Replies brought to their process from its reply queue.", total, REPLIES_DELIVERED },
    { "replies_late_total", "counter", "Replies to processes that had ended.", total,
      REPLIES_LATE },
    { "replies_dead_lettered_total", "counter",
      "Replies that could not be understood or belong to no known process, archived.", total,
      REPLIES_DEAD_LETTERED },
    { "process_command_duration_seconds", "histogram",
      "From sending the command of a command step to having its final reply.", named_histograms,
      offsetof(metrics_process_type, commands) },
    { "process_wait_duration_seconds", "histogram",
      "How long a wait took, of those that were not over at once.", named_histograms,
      offsetof(metrics_process_type, waits) },
    { "processes", "gauge", "Processes in the database that are at work or wait.", counts_by_code,
      0 },
    { "processes_by_wait", "gauge", "The same, by what they wait for.", counts_by_wait, 0 },
    { "process_oldest_seconds", "gauge",
      "How long the oldest of these has been as it is: since its last run, or since it was parked.",
      seconds_by_wait, offsetof(metrics_figure, oldest_us) },
    { "process_oldest_reply_wait_seconds", "gauge",
      "How long the oldest process that waits for the reply to a command has done so.",
      seconds_by_code, offsetof(metrics_figure, oldest_reply_us) },
    { "process_oldest_due_seconds", "gauge",
      "How long the oldest process that is due has been so, and nobody runs it.", seconds_by_code,
      offsetof(metrics_figure, oldest_due_us) },
};
const size_t n_process_families = sizeof process_families / sizeof *process_families;
