/* Opening, asking and freeing a worker. Starting and stopping are in start_stop.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <commandbus/uuid.h>
#include <commandbus/version.h>

#include "clock.h"
#include "defaults.h"
#include "engine.h"
#include "fail.h"

static const double default_effect_patience = 300;
static const size_t default_stack = 256 * 1024;

static bool copy_text(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return *to || !from;
}

/* Two that bear one name, after a restart for example, must never be taken for each other: what the
 * first one held was entered, and release_unknown of the second would give it back uncharged. */
static bool make_id(cb_worker *w, const char *name)
{
    char host[256] = "host";

    gethostname(host, sizeof host - 1);
    cb_uuid chance = cb_uuid_new();

    if (asprintf(&w->host, "%s", host) < 0)
        return false;
    if (name && *name ? asprintf(&w->name, "%.150s", name) < 0
                      : asprintf(&w->name, "%.150s-%d", host, (int)getpid()) < 0)
        return false;
    return asprintf(&w->id, "%s-%s", w->name, chance.text + 28) > 0;
}

static bool copy_sends_to(cb_worker *w, const cb_worker_options *o)
{
    bool ok = (w->sends_to = calloc(o->n_sends_to + 1, sizeof *w->sends_to)) != NULL;

    for (; ok && w->n_sends_to < o->n_sends_to; w->n_sends_to++)
        ok = copy_text(&w->sends_to[w->n_sends_to], o->sends_to[w->n_sends_to]);
    return ok;
}

static bool copy_options(cb_worker *w, const cb_worker_options *o, cb_error *e)
{
    bool ok = make_id(w, o->name) && copy_text(&w->url, o->url) &&
              copy_text(&w->listen_url, o->listen_url) && copy_text(&w->profile, o->profile) &&
              copy_text(&w->keep_commands, o->keep_commands) &&
              copy_text(&w->keep_audit, o->keep_audit) &&
              copy_text(&w->keep_archives, o->keep_archives) &&
              copy_text(&w->keep_processes, o->keep_processes) && copy_sends_to(w, o);

    if (!ok)
        return fail_memory(e);
    w->kill_grace_seconds =
        o->kill_grace_seconds > 0 ? o->kill_grace_seconds : DEFAULT_KILL_GRACE_SECONDS;
    w->unknown_grace_seconds = o->unknown_type_grace_seconds > 0
                                   ? o->unknown_type_grace_seconds
                                   : 60 * DEFAULT_UNKNOWN_TYPE_GRACE_MINUTES;
    w->effect_patience_seconds = default_effect_patience;
    w->result_limit = o->result_limit ? o->result_limit : (size_t)DEFAULT_PAYLOAD_MIB << 20;
    w->stack_bytes = o->stack_bytes ? o->stack_bytes : default_stack;
    w->no_commands = o->no_commands;
    w->no_prepared = o->no_prepared;
    w->on_event = o->on_event;
    w->on_event_arg = o->on_event_arg;
    w->event_level = o->event_level;
    return true;
}

static bool open_domain(cb_worker *w, size_t index, const cb_worker_options *o, cb_error *e)
{
    served *d = &w->domains[index];
    const char *name = o->domains[index].domain;

    if (!name || !*name)
        return cb_fail(e, CB_MISUSE, "a domain has no name");
    for (size_t i = 0; i < index; i++) {
        if (strcmp(w->domains[i].name, name) == 0)
            return cb_fail(e, CB_MISUSE, "duplicate domain '%s'", name);
    }
    w->n_domains = index + 1;
    if (!copy_text(&d->name, name))
        return fail_memory(e);
    return command_lane_init(&d->commands, w, index, &o->domains[index], e) &&
           process_lane_init(&d->processes, w, index, o, e);
}

static bool open_domains(cb_worker *w, const cb_worker_options *o, cb_error *e)
{
    w->domains = calloc(o->n_domains, sizeof *w->domains);
    w->lanes = calloc(KINDS * o->n_domains, sizeof *w->lanes);
    metrics_domain *counted = calloc(o->n_domains, sizeof *counted);
    bool ok = w->domains && w->lanes && counted;

    for (size_t i = 0; ok && i < o->n_domains; i++) {
        served *d = &w->domains[i];
        process_lane *p = &d->processes;
        ok = open_domain(w, i, o, e);
        w->lanes[i] = &d->commands.lane;
        w->lanes[o->n_domains + i] = &p->lane;
        counted[i] = (metrics_domain){ .domain = d->name,
                                       .types = &d->commands.handlers,
                                       .slots = d->commands.lane.n_slots,
                                       .kinds = p->kinds,
                                       .n_kinds = p->claim.n_kinds,
                                       .process_slots = p->lane.n_slots };
        w->runs_processes |= p->lane.n_slots > 0;
        w->moves_processes |= p->lane.n_slots > 0 || p->n_queues > 1;
    }
    w->n_lanes = ok ? KINDS * w->n_domains : 0;
    ok = ok && metrics_open(counted, w->n_domains, &w->metrics, e);
    free(counted);
    return ok;
}

bool cb_worker_open(const cb_worker_options *options, cb_worker **ret, cb_error *e)
{
    if (!options || !options->url || !options->domains || options->n_domains == 0)
        return cb_fail(e, CB_MISUSE, "a worker needs the URL of a database and a domain to serve");

    OWNED(cb_worker) w = calloc(1, sizeof *w);
    if (!w)
        return fail_memory(e);
    w->opened_at = now_ns();
    pthread_mutex_init(&w->troubled, NULL);
    maintenance_init(w);
    pthread_mutex_init(&w->life, NULL);
    pthread_mutex_init(&w->pausing, NULL);
    waiting_init(&w->unpause);
    pthread_mutex_init(&w->listening, NULL);
    pthread_mutex_init(&w->renewals.mutex, NULL);
    waiting_init(&w->renewals.changed);
    for (lane_kind kind = COMMANDS; kind < KINDS; kind++)
        trouble_init(&w->renewals.refused[kind], w, CONNECTION_RENEW, NULL, true);
    settler_init(&w->settling[COMMANDS], w, &command_ops);
    settler_init(&w->settling[PROCESSES], w, &process_ops);
    outcomes_init(&w->effecting, command_ops.bytes);
    process_memory_init(&w->process_memory);
    for (int i = 0; i < CONNECTIONS; i++)
        connection_init(&w->connections[i], w, (connection_name)i);
    if (!copy_options(w, options, e) || !open_domains(w, options, e))
        return false;
    for (lane_kind kind = COMMANDS; kind < KINDS; kind++)
        claimer_init(&w->claims[kind], w, &w->lanes[kind * w->n_domains], w->n_domains);
    *ret = cb_worker_take(&w);
    return true;
}

void cb_worker_free(cb_worker *w)
{
    if (!w)
        return;
    worker_end(w);
    for (lane_kind kind = COMMANDS; kind < KINDS; kind++)
        claimer_done(&w->claims[kind]);
    for (size_t i = 0; i < w->n_domains; i++) {
        command_lane_done(&w->domains[i].commands);
        process_lane_done(&w->domains[i].processes);
        free(w->domains[i].name);
    }
    for (int i = 0; i < CONNECTIONS; i++)
        connection_done(&w->connections[i]);
    metrics_free(w->metrics);
    for (lane_kind kind = COMMANDS; kind < KINDS; kind++)
        settler_done(&w->settling[kind]);
    outcomes_done(&w->effecting);
    process_memory_done(&w->process_memory);
    pthread_cond_destroy(&w->renewals.changed);
    pthread_mutex_destroy(&w->renewals.mutex);
    pthread_mutex_destroy(&w->listening);
    pthread_cond_destroy(&w->unpause);
    pthread_mutex_destroy(&w->pausing);
    pthread_mutex_destroy(&w->life);
    pthread_mutex_destroy(&w->troubled);
    char *texts[] = {
        w->id,         w->name,          w->profile,    w->host,          w->url,
        w->listen_url, w->keep_commands, w->keep_audit, w->keep_archives, w->keep_processes
    };
    for (size_t i = 0; i < CB_COUNT(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < w->n_sends_to; i++)
        free(w->sends_to[i]);
    free(w->sends_to);
    free(w->lanes);
    free(w->domains);
    free(w);
}

bool cb_worker_is_running(const cb_worker *w)
{
    return atomic_load(&w->running);
}

size_t cb_worker_in_flight(const cb_worker *w, const char *domain)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n_lanes; i++) {
        if (!domain || strcmp(domain, w->lanes[i]->name) == 0)
            n += atomic_load(&w->lanes[i]->in_flight);
    }
    return n;
}

const char *cb_worker_domain(const cb_worker *w, size_t i)
{
    return i < w->n_domains ? w->domains[i].name : NULL;
}

const char *cb_worker_id(const cb_worker *w)
{
    return w->id;
}

bool cb_worker_is_broken(const cb_worker *w)
{
    return atomic_load(&w->broken);
}

bool cb_worker_is_ready(const cb_worker *w, char *reason, size_t size)
{
    char refused[sizeof w->troubles->reason];
    const char *why = NULL;

    if (atomic_load(&w->broken)) /* it drains because of that */
        why = "a handler does not return";
    else if (atomic_load(&w->stopping))
        why = "draining";
    else if (!atomic_load(&w->running))
        why = "not started";
    else if (troubles_find(w, refused,
                           sizeof refused)) /* its connection may be down between two tries */
        why = refused;
    for (int i = 0; !why && i < CONNECTIONS; i++) {
        if (i != CONNECTION_KEEP && worker_needs(w, (connection_name)i) &&
            !atomic_load(&w->connections[i].up))
            why = "no connection to the database";
    }
    if (reason && size > 0)
        snprintf(reason, size, "%s", why ? why : "ready");
    return !why;
}

bool cb_worker_metrics(cb_worker *w, char **ret, cb_error *e)
{
    metrics_now *now = calloc(w->n_domains, sizeof *now);

    if (!now)
        return fail_memory(e);
    for (size_t i = 0; i < w->n_domains; i++) {
        lane *commands = worker_lane(w, COMMANDS, i), *processes = worker_lane(w, PROCESSES, i);
        pthread_mutex_lock(&commands->mutex);
        now[i] = (metrics_now){ .in_flight = atomic_load(&commands->in_flight),
                                .running = commands->running,
                                .overdue = commands->overdue,
                                .processes = atomic_load(&processes->in_flight) };
        pthread_mutex_unlock(&commands->mutex);
        pthread_mutex_lock(&processes->mutex);
        now[i].steps_overdue = processes->overdue;
        pthread_mutex_unlock(&processes->mutex);
    }
    bool ok = metrics_render(w->metrics, now, cb_worker_is_ready(w, NULL, 0), w->id,
                             cb_version_string(), ret, e);
    free(now);
    return ok;
}

void worker_emit(cb_worker *w, const cb_event *event)
{
    w->on_event(event, w->on_event_arg);
}

const char *cb_level_name(cb_level level)
{
    static const char *const names[] = {
        [CB_LEVEL_DEBUG] = "debug",
        [CB_LEVEL_INFO] = "info",
        [CB_LEVEL_WARN] = "warn",
        [CB_LEVEL_ERROR] = "error",
    };
    size_t i = (size_t)level;

    return i < sizeof names / sizeof *names ? names[i] : "unknown";
}
