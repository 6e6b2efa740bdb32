/* The maintenance thread: heartbeat, samples of the queues, and house: batches to close, retention,
 * lost messages and replies, rows of workers that died. Every instance does it, none leads: each
 * step takes what nobody else has locked, and different instances begin at different moments. */
#include <json-c/json.h>
#include <stdlib.h>
#include <unistd.h>

#include <commandbus/batch.h>
#include <commandbus/fleet.h>
#include <commandbus/purge.h>
#include <commandbus/version.h>

#include "clock.h"
#include "engine.h"

/* One round of housekeeping leaves the rest to the next after so many batches of rows. */
enum {
    PURGE_ROUNDS = 20
};

static void add_processes(json_object *o, const process_lane *l)
{
    json_object *types = json_object_new_array();

    for (size_t i = 0; i < l->claim.n_kinds; i++)
        json_object_array_add(types, json_object_new_string(l->kinds[i].process_type));
    json_object_object_add(o, "process_slots", json_object_new_int(l->lane.n_slots));
    json_object_object_add(o, "processes_in_flight",
                           json_object_new_int64((int64_t)atomic_load(&l->lane.in_flight)));
    json_object_object_add(o, "process_types", types);
}

static json_object *domain_details(served *d, int64_t settled)
{
    json_object *o = json_object_new_object();
    lane *l = &d->commands.lane;

    pthread_mutex_lock(&l->mutex);
    size_t running = l->running;
    pthread_mutex_unlock(&l->mutex);
    json_object_object_add(o, "slots", json_object_new_int(l->n_slots));
    json_object_object_add(o, "prefetch", json_object_new_int(l->n_places - l->n_slots));
    json_object_object_add(o, "in_flight",
                           json_object_new_int64((int64_t)atomic_load(&l->in_flight)));
    json_object_object_add(o, "running", json_object_new_int64((int64_t)running));
    json_object_object_add(
        o, "fleet_limit",
        d->commands.fleet_limit < 0 ? NULL : json_object_new_int(d->commands.fleet_limit));
    json_object_object_add(o, "visibility_timeout", json_object_new_double(l->vt_seconds));
    json_object_object_add(o, "settled", json_object_new_int64(settled));
    add_processes(o, &d->processes);
    return o;
}

/* What this instance runs, by type: doctor looks for those that nobody does, or only older ones. */
static json_object *process_versions(const cb_worker *w)
{
    json_object *versions = json_object_new_object();

    for (size_t i = 0; i < w->n_domains; i++) {
        const process_lane *l = &w->domains[i].processes;
        for (size_t k = 0; k < l->claim.n_kinds; k++)
            json_object_object_add(versions, l->kinds[k].process_type,
                                   json_object_new_int(l->kinds[k].version));
    }
    return versions;
}

static const char *state_of(const cb_worker *w)
{
    if (atomic_load(&w->stopping))
        return "draining";
    return cb_worker_is_ready(w, NULL, 0) ? "running" : "unready";
}

static void text(json_object *o, const char *key, const char *value)
{
    json_object_object_add(o, key, value ? json_object_new_string(value) : NULL);
}

bool heartbeat_send(cb_worker *w, cb_error *e)
{
    OWNED(json_object) details = json_object_new_object();
    json_object *domains = json_object_new_object();

    text(details, "name", w->name);
    text(details, "host", w->host);
    json_object_object_add(details, "pid", json_object_new_int(getpid()));
    text(details, "version", cb_version_string());
    text(details, "profile", w->profile);
    text(details, "state", state_of(w));
    json_object_object_add(details, "uptime_seconds",
                           json_object_new_int64((now_ns() - w->opened_at) / 1000000000));
    for (size_t i = 0; i < w->n_domains; i++)
        json_object_object_add(domains, w->domains[i].name,
                               domain_details(&w->domains[i], metrics_settled(w->metrics, i)));
    json_object_object_add(details, "domains", domains);
    json_object_object_add(details, "processes", process_versions(w));
    return cb_heartbeat(w->connections[CONNECTION_KEEP].db, w->id,
                        json_object_to_json_string_ext(details, JSON_C_TO_STRING_PLAIN), e);
}

static bool take_samples(cb_worker *w, cb_error *e)
{
    cb_queue_sample *samples = calloc(w->n_domains + 1, sizeof *samples);

    for (size_t i = 0; samples && i < w->n_domains; i++)
        samples[i].domain = w->domains[i].name;
    bool ok = samples &&
              cb_queue_sample_many(w->connections[CONNECTION_KEEP].db, samples, w->n_domains, e);
    for (size_t i = 0; ok && i < w->n_domains; i++)
        metrics_sample(w->metrics, i, &samples[i]);
    free(samples);
    return ok;
}

/* Also where none run: when nobody is left who runs them, somebody must tell. */
static bool take_figures(cb_worker *w, cb_error *e)
{
    return process_figures_take(w, w->connections[CONNECTION_KEEP].db, e);
}

static bool take_fleet_figures(cb_worker *w, cb_error *e)
{
    return fleet_figures_take(w, w->connections[CONNECTION_KEEP].db, e);
}

/* Retention, some batches of rows at a time, so that heartbeats go on. */
static bool purge(cb_worker *w, int64_t *rows, cb_error *e)
{
    cb_purge_options options = { .commands = w->keep_commands,
                                 .audit = w->keep_audit,
                                 .archives = w->keep_archives,
                                 .processes = w->keep_processes };
    cb_purge_counts counts = { 0 };
    int64_t last = 1;

    if (!w->keep_commands && !w->keep_audit && !w->keep_archives && !w->keep_processes)
        return true;
    for (int i = 0; i < PURGE_ROUNDS && last > 0 && !atomic_load(&w->ending); i++) {
        if (!cb_purge(w->connections[CONNECTION_KEEP].db, &options, &counts, e))
            return false;
        last = counts.commands + counts.batches + counts.audit + counts.archives + counts.processes;
        *rows += last;
    }
    return true;
}

static bool keep_house(cb_worker *w, cb_error *e)
{
    size_t closed = 0;
    int64_t purged = 0;

    if (!cb_batch_close(w->connections[CONNECTION_KEEP].db, NULL, 0, &closed, e) ||
        !cb_fleet_tidy(w->connections[CONNECTION_KEEP].db, NULL, e) || !purge(w, &purged, e))
        return false;
    metrics_housekeeping(w->metrics, (int64_t)closed, purged, 0, 0);
    if (closed > 0 || purged > 0)
        emit(w, CB_LEVEL_INFO, "maintenance.done", .count = purged, .in_flight = 0,
             .outcome = closed > 0 ? "batches closed" : NULL);
    return true;
}

/* A domain whose queue is gone must not keep the others from it. */
static bool keep_messages(cb_worker *w, cb_error *e)
{
    bool ok = true;

    for (size_t i = 0; i < w->n_domains && !cb_db_is_lost(w->connections[CONNECTION_KEEP].db);
         i++) {
        size_t restored = 0;
        ok &=
            cb_messages_keep(w->connections[CONNECTION_KEEP].db, w->domains[i].name, &restored, e);
        if (restored == 0)
            continue;
        metrics_housekeeping(w->metrics, 0, 0, (int64_t)restored, 0);
        emit(w, CB_LEVEL_WARN, "messages.restored", .domain = w->domains[i].name,
             .count = (int64_t)restored,
             .hint = "their messages had vanished from the queue: did somebody purge it by hand?");
    }
    return ok;
}

/* For the processes of all domains: who runs none may be the only one left to do it. */
static bool keep_replies(cb_worker *w, cb_error *e)
{
    double every = w->chore_seconds[CHORE_REPLIES];
    size_t restored = 0;

    /* A little less than the interval, or a turn that came a moment early would be left out. */
    if (!cb_replies_keep(w->connections[CONNECTION_KEEP].db, 0.9 * every, every, &restored, e))
        return false;
    if (restored > 0) {
        metrics_housekeeping(w->metrics, 0, 0, 0, (int64_t)restored);
        emit(w, CB_LEVEL_WARN, "replies.restored", .count = (int64_t)restored,
             .hint = "they had vanished on their way to processes: did somebody empty the queue?");
    }
    return true;
}

static bool deliver_former_replies(cb_worker *w, cb_error *e)
{
    bool ok = true;

    for (size_t i = 0; ok && i < w->n_domains; i++)
        ok = process_lane_deliver_former(&w->domains[i].processes,
                                         w->connections[CONNECTION_KEEP].db, e);
    return ok;
}

static const struct {
    bool (*run)(cb_worker *w, cb_error *e);
    const char *name;
    double seconds;
    bool at_start; /* else at some moment within its first interval: not all of a rollout at once */
} chores[CHORES] = {
    [CHORE_HEARTBEAT] = { heartbeat_send, "heartbeat", 5, true },
    [CHORE_SAMPLE] = { take_samples, "sample", 10, true },
    [CHORE_FIGURES] = { take_figures, "figures", 10, true },
    [CHORE_FLEET] = { take_fleet_figures, "fleet", 10, true },
    [CHORE_FORMER] = { deliver_former_replies, "former", 5, true },
    [CHORE_HOUSE] = { keep_house, "house", 60, false },
    [CHORE_MESSAGES] = { keep_messages, "messages", 20, false },
    [CHORE_REPLIES] = { keep_replies, "replies", 20, false },
};

void maintenance_init(cb_worker *w)
{
    for (size_t i = 0; i < CHORES; i++) {
        w->chore_seconds[i] = chores[i].seconds;
        trouble_init(&w->chore_refused[i], w, CONNECTION_KEEP, NULL, false);
    }
}

/* One that is refused keeps nobody from the others, and the instance works on without it. */
static void run_chore(cb_worker *w, size_t i)
{
    db_connection *conn = &w->connections[CONNECTION_KEEP];
    cb_error e = { 0 };

    if (chores[i].run(w, &e)) {
        connection_worked(conn);
        trouble_end(&w->chore_refused[i]);
    } else if (is_refusal(conn->db, &e)) {
        trouble_add(&w->chore_refused[i], &e, chores[i].name, "database.refused");
    } else {
        connection_failed(conn, &e, chores[i].name);
    }
}

/* When a chore that began then and has just ended is due again. One that takes long, because
 * somebody holds a snapshot and all that is dead is still there, takes no more than a fiftieth of
 * the time; but the fleet must hear of us. */
static int64_t due_again(const cb_worker *w, size_t i, int64_t began)
{
    int64_t interval = seconds_to_ns(w->chore_seconds[i]), rest = 50 * (now_ns() - began);

    if (i == CHORE_HEARTBEAT || rest < interval)
        return began + interval;
    return began + (rest < 6 * interval ? rest : 6 * interval);
}

void *maintenance_thread(void *worker)
{
    cb_worker *w = worker;
    db_connection *conn = &w->connections[CONNECTION_KEEP];
    int64_t due[CHORES], now = now_ns();

    for (size_t i = 0; i < CHORES; i++)
        due[i] = chores[i].at_start ? now : now + (now / 1000) % seconds_to_ns(w->chore_seconds[i]);
    while (connection_ready(conn, NULL)) {
        int64_t next = now_ns() + seconds_to_ns(w->chore_seconds[CHORE_HEARTBEAT]);
        for (size_t i = 0; i < CHORES && atomic_load(&conn->up); i++) {
            if (now_ns() >= due[i]) {
                int64_t began = now_ns();
                run_chore(w, i);
                due[i] = due_again(w, i, began);
            }
            next = due[i] < next ? due[i] : next;
        }
        if (!worker_pause(w, ns_to_ms(next - now_ns()) / 1e3))
            break;
    }
    return NULL;
}
