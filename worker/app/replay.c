/* --replay: comparing code with the processes that are there, before it is rolled out. */
#include <commandbus/process_row.h>
#include <commandbus/run.h>
#include <ctype.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "assembly.h"
#include "fail.h"
#include "nearest.h"
#include "thread.h"

enum {
    PAGE = 500
};

/* ---- what is told: a line for each finding as it is made, a summary at the end ---- */

typedef struct {
    bool json;
    bool progress; /* stderr is a terminal */
    int64_t began_ms, shown_ms;
    int64_t checked, diverged;
    int64_t unknown;   /* skipped: their type is not in this program */
    int64_t newer;     /* skipped: written by newer code, which this program leaves alone */
    int64_t too_large; /* skipped: no run loads them; they are parked */
} replay_report;

static const int64_t patience_ms = 2000, between_ms = 500;
static const char json_begin[] = "{\"diverged\":[";

static void report_init(replay_report *r, bool json)
{
    *r = (replay_report){ .json = json,
                          .progress = isatty(STDERR_FILENO) == 1,
                          .began_ms = monotonic_ms() };
}

/* Takes the progress away, so that something else can be said. */
static void report_clear(replay_report *r)
{
    if (r->shown_ms > 0)
        fputs("\r\033[K", stderr);
    r->shown_ms = 0;
}

static void report_json(const cb_process_row *row, const char *why, bool first)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "process_id", json_object_new_string(row->process_id.text));
    json_object_object_add(o, "process_type", json_object_new_string(row->process_type));
    json_object_object_add(o, "version", json_object_new_int(row->version));
    json_object_object_add(o, "status", json_object_new_string(row->status));
    json_object_object_add(o, "why", json_object_new_string(why));
    printf(
        "%s\n%s", first ? json_begin : ",",
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
}

/* One line, whatever the names of steps are made of. */
static void report_line(const cb_process_row *row, const char *why)
{
    printf("%s  %s  version %d  ", row->process_id.text, row->process_type, row->version);
    for (; *why; why++)
        putchar(iscntrl((unsigned char)*why) ? ' ' : *why);
    putchar('\n');
}

/* This process would not go on. */
static void report_finding(replay_report *r, const cb_process_row *row, const char *why)
{
    report_clear(r);
    if (r->json)
        report_json(row, why, r->diverged == 0);
    else
        report_line(row, why);
    r->diverged++;
}

/* Another process is done with: on a terminal, says now and then how far it is. */
static void report_progress(replay_report *r)
{
    int64_t now = r->progress ? monotonic_ms() : 0;

    if (!r->progress || now - r->began_ms < patience_ms || now - r->shown_ms < between_ms)
        return;
    fprintf(stderr, "\r\033[K%" PRId64 " checked, %" PRId64 " would diverge …", r->checked,
            r->diverged);
    r->shown_ms = now;
}

static void report_end(replay_report *r)
{
    report_clear(r);
    if (r->json) {
        printf("%s],\"checked\":%" PRId64 ",\"skipped\":{\"unknown_type\":%" PRId64
               ",\"newer_version\":%" PRId64 ",\"too_large\":%" PRId64 "}}\n",
               r->diverged ? "\n" : json_begin, r->checked, r->unknown, r->newer, r->too_large);
        return;
    }
    printf("%" PRId64 " checked, %" PRId64 " would diverge, %" PRId64 " skipped", r->checked,
           r->diverged, r->unknown + r->newer + r->too_large);
    if (r->unknown + r->newer + r->too_large > 0)
        printf(" (%" PRId64 " of types that are not in this program, %" PRId64
               " written by newer code",
               r->unknown, r->newer);
    if (r->too_large > 0)
        printf(", %" PRId64 " too large for any run", r->too_large);
    if (r->unknown + r->newer + r->too_large > 0)
        putchar(')');
    putchar('\n');
}

/* ---- what this program has ---- */

typedef struct {
    const replay_request *request;
    assembly parts;
    cb_process_types *types;
    cb_run *run;
    cb_db *db;
    replay_report report;
} replaying;

/* NULL: it has none of that name. */
static const cb_process_kind *replay_find_kind(const replaying *r, const char *process_type)
{
    const cb_process_kind *kinds = cb_process_types_kinds(r->types);

    for (size_t i = 0; i < cb_process_types_count(r->types); i++) {
        if (strcmp(kinds[i].process_type, process_type) == 0)
            return &kinds[i];
    }
    return NULL;
}

static bool replay_check_type(const replaying *r, cb_error *e)
{
    const char *type = r->request->process_type;
    nearest_word nearest = { .word = type, .length = type ? strlen(type) : 0 };
    char hint[200] = "";

    if (!type || replay_find_kind(r, type))
        return true;
    for (size_t i = 0; i < cb_process_types_count(r->types); i++)
        nearest_offer(&nearest, cb_process_types_kinds(r->types)[i].process_type);
    if (nearest.best)
        snprintf(hint, sizeof hint, "Did you mean %s?", nearest.best);
    return fail_misuse(e, hint, "this program has no process type '%.100s'", type);
}

static bool replay_start(replaying *r, const config *c, cb_error *e)
{
    const assembly *parts = &r->parts;

    if (!assembly_init(&r->parts, c, e))
        return false;
    /* Nothing to compare with is no reason to say that all is well. */
    if (parts->n_process_types == 0)
        return fail_misuse(e, "Set domains.<d>.handlers, or --profile, as the workers have it.",
                           "no handler set of this configuration has a process type");
    return cb_process_types_open(parts->process_types, parts->n_process_types, parts->routes,
                                 c->n_steps, parts->settings, parts->n_settings, &r->types, e) &&
           replay_check_type(r, e) && cb_run_open(r->types, &r->run, e) &&
           cb_db_open(c->database_url, &r->db, e) && cb_db_check_schema(r->db, e);
}

/* ---- comparing ---- */

static bool replay_is_over(const char *status)
{
    static const char *const ends[] = { "COMPLETED", "CANCELED", "COMPENSATED", "FAILED" };

    for (size_t i = 0; i < CB_COUNT(ends); i++) {
        if (strcmp(ends[i], status) == 0)
            return true;
    }
    return false;
}

static bool replay_compare(replaying *r, const cb_process_row *row, cb_error *e)
{
    const cb_process_kind *kind = replay_find_kind(r, row->process_type);

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

    if (!cb_process_read(r->db, id, &read, e) ||
        !replay_compare(r, cb_process_claim_at(read, 0), e))
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
    bool fine = replay_is_over(row->status) || replay_compare(r, row, e);
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

static void replay_done(replaying *r)
{
    cb_db_free(r->db);
    cb_run_free(r->run);
    cb_process_types_free(r->types);
    assembly_done(&r->parts);
}

ended replay(const config *c, const replay_request *request, const signals *s)
{
    replaying r = { .request = request };
    cb_error e = { 0 };
    ended how;

    /* There is nothing to drain: a signal may end it where it is. */
    pthread_sigmask(SIG_UNBLOCK, &s->ending, NULL);
    report_init(&r.report, request->json);
    if (replay_start(&r, c, &e) &&
        (request->process_id ? replay_one(&r, &e) : replay_running(&r, &e))) {
        report_end(&r.report);
        how = r.report.diverged ? ENDED_DIVERGED : ENDED_CLEAN;
    } else {
        report_clear(&r.report);
        how = refuse(&e);
        if (e.code == CB_PROCESS_NOT_FOUND)
            how = ENDED_CONFIGURATION;
    }
    replay_done(&r);
    return how;
}
