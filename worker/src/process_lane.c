/* The lane of a domain's processes: their types and queues. */
#include "process_lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "defaults.h"
#include "engine.h"
#include "fail.h"

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
        return fail_memory(e);
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
    return ok || fail_memory(e);
}

/* ---- opening and closing ---- */

static int count_slots(const process_lane *l, const cb_worker_options *all,
                       const cb_worker_domain_options *o)
{
    if (l->n_kinds == 0 || all->no_processes)
        return 0;
    if (o->concurrent_processes)
        return o->concurrent_processes;
    return o->concurrent_messages ? o->concurrent_messages : DEFAULT_CONCURRENT_MESSAGES;
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
    size_t first = slots > 0 ? 0 : 1; /* who runs none is not to be woken for them */
    l->lane.claiming.sleep.queues = (const char *const *)l->queues + first;
    l->lane.claiming.sleep.n_queues = l->n_queues - first;
    l->lane.first_reply = 1 - first;
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

/* ---- claiming ---- */

/* How long a timer may stay unknown that another instance has set: nobody is notified of timers,
 * and whoever set one may be gone when it is due (STP.15). */
static const double strange_timer_seconds = 0.8;
/* While there is much to do the next timer is asked for so often, not at every look. */
static const double ask_timer_seconds = 0.05;

static size_t process_free_places(const lane *l)
{
    return process_memory_room(atomic_load(&l->worker->claimed_bytes[PROCESSES])) > 0
               ? lane_free_places(l)
               : 0;
}

static void process_tell_claimed(const lane *l, size_t n, const cb_process_look *look)
{
    cb_worker *w = l->worker;

    metrics_process_claim(w->metrics, l->index, n, look);
    if (n > 0)
        emit(w, CB_LEVEL_DEBUG, "processes.claimed", .domain = l->name, .count = (int64_t)n);
    if (look->delivered > 0)
        emit(w, CB_LEVEL_DEBUG, "replies.delivered", .domain = l->name, .count = look->delivered);
    if (look->late > 0)
        emit(w, CB_LEVEL_WARN, "replies.late", .domain = l->name, .count = look->late,
             .hint = "their processes had ended: see process events LATE_REPLY");
    if (look->dead_lettered > 0)
        emit(w, CB_LEVEL_WARN, "replies.dead_lettered", .domain = l->name,
             .count = look->dead_lettered,
             .hint = "archived: see audit events REPLY_DEAD_LETTERED");
}

static double sooner(double a, double b)
{
    return a < 0 || b < a ? b : a;
}

/* Seconds until the next look for a timer that nobody hints at; < 0: any. */
static double seconds_to_timer(process_lane *l, const cb_process_look *look)
{
    int64_t now = now_ns();
    double seconds = -1;

    if (!l->claim.leave_timer) {
        l->timer_asked_at = now;
        /* 0: due, but not for us: somebody holds it, or a newer worker wrote it. That is polled
         * for. */
        l->timer_at = look->next_seconds > 0 ? now + seconds_to_ns(look->next_seconds) : 0;
    } else {
        seconds = ask_timer_seconds;
        if (look->next_seconds > 0) /* a reply to deliver */
            seconds = sooner(seconds, look->next_seconds);
    }
    if (l->timer_at > 0)
        seconds = sooner(seconds, l->timer_at > now ? ns_to_ms(l->timer_at - now) / 1000 : 0);
    if (l->lane.n_slots > 0)
        seconds = sooner(seconds, strange_timer_seconds);
    return seconds;
}

/* One call delivers the replies that have come, takes what is due, and tells when the next timer
 * will be. */
static bool process_claim(lane *base, cb_db *db, size_t quantity, claimed *ret, cb_error *e)
{
    process_lane *l = (process_lane *)base;
    OWNED(cb_process_claim) taken = NULL;
    cb_process_look look = { .next_seconds = -1 };
    int64_t now = now_ns();

    l->claim.leave_replies = !base->claiming.replies;
    l->claim.claim_bytes =
        process_memory_room(atomic_load(&base->worker->claimed_bytes[PROCESSES]));
    l->claim.leave_timer = now < l->timer_asked_at + seconds_to_ns(ask_timer_seconds) &&
                           (l->timer_at == 0 || now < l->timer_at);
    if (!cb_process_claim_due(db, &l->claim, (int)quantity, &taken, &look, e))
        return false;
    ret->n = cb_process_claim_count(taken);
    ret->bytes = cb_process_claim_bytes(taken);
    ret->seen = ret->n + (size_t)(look.delivered + look.late + look.dead_lettered);
    ret->more = base->n_slots > 0 && (ret->n >= quantity || look.more_processes);
    ret->more_replies = look.more_replies;
    ret->look_within = seconds_to_timer(l, &look);
    process_tell_claimed(base, ret->n, &look);
    if (ret->n > 0)
        ret->claim = cb_process_claim_take(&taken);
    return true;
}

static void process_claim_free(void *claim)
{
    cb_process_claim_free(claim);
}

bool process_lane_deliver_former(process_lane *l, cb_db *db, cb_error *e)
{
    cb_worker *w = l->lane.worker;
    /* The claim's own options are the claimer's. */
    cb_process_claim_options o = { .worker = w->id,
                                   .kinds = l->kinds,
                                   .n_kinds = l->n_kinds,
                                   .reply_grace_seconds = l->claim.reply_grace_seconds };
    int64_t delivered = 0;

    if (l->n_queues > 1 && !cb_process_deliver_former(db, &o, &delivered, e))
        return false;
    if (delivered > 0) {
        emit(w, CB_LEVEL_INFO, "replies.delivered", .domain = l->lane.name, .count = delivered,
             .hint = "from a former reply queue: the configuration names another now");
        claimer_hint(&l->lane);
    }
    return true;
}

/* ---- jobs ---- */

static const cb_process_row *row_of(const job *j)
{
    return ((const process_job *)j)->row;
}

static size_t type_of(const process_lane *l, const char *process_type)
{
    size_t i = 0;

    while (i + 1 < l->n_kinds && strcmp(l->kinds[i].process_type, process_type) != 0)
        i++;
    return i;
}

static job *process_job_make(lane *base, claim_share *share, size_t i, int64_t lease_end)
{
    process_lane *l = (process_lane *)base;
    process_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    job_init(&j->job, base, share, lease_end);
    j->row = cb_process_claim_at(share->claim, i);
    j->type = type_of(l, j->row->process_type);
    j->outcome.outcome.job = &j->job;
    sem_init(&j->answer, 0, 0);
    metrics_timer_lag(base->worker->metrics, base->index, j->row->waited_us);
    return &j->job;
}

static void process_job_free(job *base)
{
    process_job *j = (process_job *)base;

    sem_destroy(&j->answer);
    cb_process_item_free(j->item);
    free(j->error_code);
    free(j->error_message);
    free(j->misuse);
    free(j);
}

/* ---- leases ---- */

/* The caller frees them. */
static cb_process_lease *process_leases(job *const *jobs, size_t n, cb_error *e)
{
    cb_process_lease *leases = calloc(n + 1, sizeof *leases);

    for (size_t i = 0; leases && i < n; i++)
        leases[i] = (cb_process_lease){ .process_id = row_of(jobs[i])->process_id,
                                        .lease_no = row_of(jobs[i])->lease_no };
    if (!leases)
        cb_fail(e, CB_AGAIN, "out of memory for %zu leases", n);
    return leases;
}

static bool process_extend(cb_worker *w, cb_db *db, job *const *jobs, size_t n, double seconds,
                           cb_lease_state *states, cb_error *e)
{
    cb_process_lease *leases = process_leases(jobs, n, e);
    bool asked = leases && cb_process_extend(db, w->id, leases, n, seconds, e);

    for (size_t i = 0; asked && i < n; i++)
        states[i] = leases[i].held ? CB_LEASE_EXTENDED : CB_LEASE_GONE;
    free(leases);
    return asked;
}

static bool process_release_unknown(lane *base, cb_db *db, job *const *jobs, size_t n,
                                    size_t *released, cb_error *e)
{
    const process_lane *l = (const process_lane *)base;
    cb_process_lease *held = process_leases(jobs, n, e);
    bool asked = held && cb_process_release_unknown(db, base->worker->id, l->kinds, l->n_kinds,
                                                    held, n, released, e);

    free(held);
    return asked;
}

static void process_tell_lost(const job *j)
{
    const cb_process_row *row = row_of(j);

    emit(j->lane->worker, CB_LEVEL_WARN, "lease.lost", .domain = j->lane->name,
         .process_id = row->process_id.text, .process_type = row->process_type,
         .lease_no = row->lease_no);
}

const lane_ops process_ops = {
    .kind = PROCESSES,
    .claim_connection = CONNECTION_PROCESS,
    .settle_connection = CONNECTION_PROCESS_SETTLE,
    .free_places = process_free_places,
    .claim = process_claim,
    .claim_free = process_claim_free,
    .job_make = process_job_make,
    .job_free = process_job_free,
    .release_unknown = process_release_unknown,
    .count_released = metrics_process_released,
    .released_event = "process.released",
    .released_hint = "claimed, but not begun here: given back",
    .run = process_job_run,
    .give_back = process_job_give_back,
    .tell_overdue = process_job_tell_overdue,
    .extend = process_extend,
    .count_renewed = metrics_process_renewed,
    .tell_lost = process_tell_lost,
    .item_size = sizeof(cb_process_settlement),
    .item_at = offsetof(process_outcome, settlement),
    .verdict_at = offsetof(cb_process_settlement, verdict),
    .bytes = process_outcome_bytes,
    .settle = process_outcomes_settle,
    .settled = process_outcome_settled,
    .tell_refused = process_outcome_tell_refused,
    .left = process_outcome_left,
};
