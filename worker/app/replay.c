/* Comparing code with the processes that are there, before it is rolled out. */
#include "replay.h"

#include <commandbus/run.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assembly.h"
#include "fail.h"
#include "nearest.h"
#include "replay_report.h"

enum {
    PAGE = 500
};

typedef struct {
    const replay_request *request;
    assembly parts;
    const cb_process_type **listed;
    cb_process_types *types;
    cb_run *run;
    cb_db *db;
    replay_report report;
} replaying;

/* ---- what this program has ---- */

static bool open_types(replaying *r, cb_error *e)
{
    size_t room = 1, n = 0;

    for (size_t i = 0; i < r->parts.n_sets; i++)
        room += cb_set_module(r->parts.sets[i])->n_processes;
    r->listed = calloc(room, sizeof *r->listed);
    if (!r->listed)
        return fail_memory(e);
    for (size_t i = 0; i < r->parts.n_sets; i++) {
        const cb_module *set = cb_set_module(r->parts.sets[i]);
        for (size_t k = 0; k < set->n_processes; k++)
            r->listed[n++] = set->processes[k];
    }
    /* Nothing to compare with is no reason to say that all is well. */
    if (n == 0)
        return fail_misuse(e, "Set domains.<d>.handlers, or --profile, as the workers have it.",
                           "no handler set of this configuration has a process type");
    const cb_worker_options *w = &r->parts.worker;
    return cb_process_types_open(r->listed, n, w->routes, w->n_routes, w->settings, w->n_settings,
                                 &r->types, e);
}

/* NULL: it has none of that name. */
static const cb_process_kind *find_kind(const replaying *r, const char *process_type)
{
    const cb_process_kind *kinds = cb_process_types_kinds(r->types);

    for (size_t i = 0; i < cb_process_types_count(r->types); i++) {
        if (strcmp(kinds[i].process_type, process_type) == 0)
            return &kinds[i];
    }
    return NULL;
}

static bool check_type(const replaying *r, cb_error *e)
{
    const char *type = r->request->process_type;
    nearest_word nearest = { .word = type, .length = type ? strlen(type) : 0 };
    char hint[200] = "";

    if (!type || find_kind(r, type))
        return true;
    for (size_t i = 0; i < cb_process_types_count(r->types); i++)
        nearest_offer(&nearest, cb_process_types_kinds(r->types)[i].process_type);
    if (nearest.best)
        snprintf(hint, sizeof hint, "Did you mean %s?", nearest.best);
    return fail_misuse(e, hint, "this program has no process type '%.100s'", type);
}

static bool start(replaying *r, const config *c, cb_error *e)
{
    return assembly_init(&r->parts, c, e) && open_types(r, e) && check_type(r, e) &&
           cb_run_open(r->types, &r->run, e) && cb_db_open(c->database_url, &r->db, e) &&
           cb_db_check_schema(r->db, e);
}

/* ---- comparing ---- */

static bool is_over(const char *status)
{
    static const char *const ends[] = { "COMPLETED", "CANCELED", "COMPENSATED", "FAILED" };

    for (size_t i = 0; i < CB_COUNT(ends); i++) {
        if (strcmp(ends[i], status) == 0)
            return true;
    }
    return false;
}

static bool compare(replaying *r, const cb_process_row *row, cb_error *e)
{
    const cb_process_kind *kind = find_kind(r, row->process_type);

    if (!kind) {
        r->report.unknown++;
    } else if (row->version > kind->version) {
        r->report.newer++;
    } else if (row->too_large > 0) {
        r->report.too_large++;
    } else if (cb_run_replay(r->run, row, e)) {
        r->report.checked++;
    } else if (e->code == CB_MEMORY) {
        return false;
    } else {
        r->report.checked++;
        report_finding(&r->report, row, e->message);
    }
    return true;
}

static bool replay_one(replaying *r, cb_error *e)
{
    OWNED(cb_process_claim) read = NULL;
    const char *id = r->request->process_id;

    if (!cb_process_read(r->db, id, &read, e) || !compare(r, cb_process_claim_at(read, 0), e))
        return false;
    /* Who asks about one process wants an answer. */
    const cb_process_row *row = cb_process_claim_at(read, 0);
    if (r->report.unknown)
        return fail_misuse(e, "Use the configuration of the workers that run it.",
                           "process %s is of type '%.100s', which this program does not have", id,
                           row->process_type);
    if (r->report.too_large)
        return fail_misuse(e,
                           "No worker loads it either: commandbus process show tells what to do.",
                           "process %s holds %lld bytes, more than content_limit of its domain", id,
                           (long long)row->too_large);
    if (r->report.newer)
        return fail_misuse(e, "Workers of this version leave it to newer ones.",
                           "process %s was written by version %d of '%.100s', which is newer", id,
                           row->version, row->process_type);
    return true;
}

/* One of a list. It may have ended since, or be gone. */
static bool replay_listed(replaying *r, const char *id, cb_error *e)
{
    OWNED(cb_process_claim) read = NULL;

    if (!cb_process_read(r->db, id, &read, e))
        return e->code == CB_PROCESS_NOT_FOUND;
    const cb_process_row *row = cb_process_claim_at(read, 0);
    bool fine = is_over(row->status) || compare(r, row, e);
    report_progress(&r->report);
    return fine;
}

static bool replay_running(replaying *r, cb_error *e)
{
    cb_uuid ids[PAGE], after;
    size_t n = PAGE;

    for (bool first = true; n == PAGE; first = false) {
        if (!cb_process_running(r->db, r->request->process_type, first ? NULL : after.text, ids,
                                PAGE, &n, e))
            return false;
        for (size_t i = 0; i < n; i++) {
            if (!replay_listed(r, ids[i].text, e))
                return false;
        }
        if (n > 0)
            after = ids[n - 1];
    }
    return true;
}

/* ---- all of it ---- */

static void done(replaying *r)
{
    cb_db_free(r->db);
    cb_run_free(r->run);
    cb_process_types_free(r->types);
    free(r->listed);
    assembly_done(&r->parts);
}

static bool go(replaying *r, const config *c, cb_error *e)
{
    if (!start(r, c, e) || !(r->request->process_id ? replay_one(r, e) : replay_running(r, e)))
        return false;
    report_end(&r->report);
    return true;
}

ended replay(const config *c, const replay_request *request, const signals *s)
{
    replaying r = { .request = request };
    cb_error e = { 0 };
    ended how;

    /* There is nothing to drain: a signal may end it where it is. */
    pthread_sigmask(SIG_UNBLOCK, &s->ending, NULL);
    report_init(&r.report, request->json);
    if (go(&r, c, &e)) {
        how = r.report.diverged ? ENDED_DIVERGED : ENDED_CLEAN;
    } else {
        report_clear(&r.report);
        how = refuse(&e);
        if (e.code == CB_PROCESS_NOT_FOUND)
            how = ENDED_CONFIGURATION;
    }
    done(&r);
    return how;
}
