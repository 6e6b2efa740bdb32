/* Starting processes from a program: one here and now, or left to the workers; or a batch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <commandbus/run.h>

#include "process_run.h"

static const double default_lease = 60;

typedef struct {
    cb_db *db;
    const char *worker;
    double lease_seconds;
} here;

/* False: there is no use in trying it again. */
static bool may_come_through(cb_db *db, const cb_error *e)
{
    cb_error why;

    return e->code == CB_AGAIN || (e->code == CB_LOST && cb_db_reconnect(db, &why));
}

/* The same again while the row is locked, as by a response that arrives, or the connection was
 * lost; for as long as the lease may last. */
static bool settle(const here *h, cb_process_settlement *settlement)
{
    static const struct timespec nap = { 0, 5000000 };
    int64_t until = clock_ms() + (int64_t)(h->lease_seconds * 1000);

    do {
        cb_error e = { 0 };
        bool sent = cb_process_settle_each(h->db, h->worker, settlement, 1, NULL, &e);
        if (sent && settlement->verdict != CB_BUSY)
            return settlement->verdict == CB_SETTLED || settlement->verdict == CB_ALREADY;
        if (!sent && !may_come_through(h->db, &e))
            return false;
        nanosleep(&nap, NULL);
    } while (clock_ms() < until);
    return false;
}

static bool checkpoint(void *arg, cb_process_settlement *settlement)
{
    return settle(arg, settlement);
}

void cb_process_types_set_caller(cb_process_types *types, const char *name)
{
    snprintf(types->caller, sizeof types->caller, "%s", name);
}

/* A name for people; the fence is the lease's number. */
void cb_process_types_caller(const cb_process_types *types, char *to, size_t size)
{
    char host[200] = "host";

    gethostname(host, sizeof host - 1);
    if (types->caller[0])
        snprintf(to, size, "%s-%s", types->caller, cb_uuid_new().text + 28);
    else
        snprintf(to, size, "%s-%d-%s", host, (int)getpid(), cb_uuid_new().text + 28);
}

/* It is started: whatever goes wrong from here on, it is EXECUTING and the workers take it up when
 * the lease ends. */
static const char *run_here(const here *h, const cb_process_types *types, const cb_uuid *id)
{
    cb_run_host host = { .checkpoint = checkpoint, .lease_seconds = h->lease_seconds };
    OWNED(cb_process_claim) claim = NULL;
    OWNED(cb_run) run = NULL;
    cb_run_result result;
    cb_error e;

    /* lease_no: the first is ours, and any other is somebody's who took it over. */
    if (!cb_process_read(h->db, id->text, &claim, &e) || cb_process_claim_count(claim) != 1 ||
        cb_process_claim_at(claim, 0)->lease_no != 1 || !cb_run_open(types, &run, &e))
        return process_status_names[STATUS_EXECUTING];
    cb_run_process(run, cb_process_claim_at(claim, 0), &host, (void *)h, &result);
    if (result.lost || !settle(h, &result.settlement))
        return process_status_names[STATUS_EXECUTING];
    return result.status;
}

/* NULL with the reason when this program does not have the type. */
static const type_entry *start_type(const cb_process_types *types, const char *name, cb_error *e)
{
    const type_entry *entry = types_find(types, name);

    if (!entry)
        cb_fail(e, CB_UNKNOWN_PROCESS_TYPE, "this program has no process type '%s'", name);
    return entry;
}

/* The state as JSON, which the caller owns; NULL with the reason. */
static json_object *start_state(const cb_process_type *type, const void *state, cb_error *e)
{
    json_object *json = NULL;

    if (!cb_fields_valid(type->state, state, e))
        cb_fail_while(e, "starting a process of type '%s'", type->name);
    else if (!(json = cb_fields_write(type->state, state)))
        cb_fail(e, CB_MEMORY, "out of memory for the state");
    return json;
}

typedef bool start_request(cb_db *db, const void *what, cb_error *e);

/* Makes the request; when nobody has registered the type yet, registers it and makes it again. */
static bool start_registered(cb_db *db, const cb_process_types *types, const type_entry *entry,
                             start_request *request, const void *what, cb_error *e)
{
    cb_error why = { 0 };

    if (request(db, what, &why))
        return true;
    if (why.code == CB_UNKNOWN_PROCESS_TYPE)
        return cb_process_types_register(db, types, entry->type->name, e) && request(db, what, e);
    if (e)
        *e = why;
    return false;
}

typedef struct {
    const char *type, *state;
    const cb_process_request_options *options;
    cb_uuid *id;
} one_process;

static bool request(cb_db *db, const void *what, cb_error *e)
{
    const one_process *p = what;

    return cb_process_request_start(db, p->type, p->state, p->options, p->id, e);
}

/* A step must not run before its process is committed. */
static bool may_run_here(cb_db *db, cb_error *e)
{
    if (cb_process_settle_each(db, "nobody", NULL, 0, NULL, e)) /* settles nothing, but asks */
        return true;
    return cb_fail_while(e, "starting a process here; inside a transaction use .deferred");
}

bool cb_process_run_leased(cb_db *db, const cb_process_types *types, const char *process_id,
                           const char *leased_by, double lease_seconds, const char **status,
                           cb_error *e)
{
    here h = { db, leased_by, lease_seconds > 0 ? lease_seconds : default_lease };
    cb_uuid id;

    if (!cb_uuid_parse(process_id, &id))
        return cb_fail(e, CB_INVALID_DATA, "process_id is not a UUID: '%.80s'", process_id);
    if (!may_run_here(db, e))
        return false;
    const char *how = run_here(&h, types, &id);
    if (status)
        *status = how;
    return strcmp(how, process_status_names[STATUS_EXECUTING]) != 0 ||
           cb_fail(e, CB_AGAIN, "process %s is left to the workers", process_id);
}

bool cb_process_start_with(cb_db *db, const cb_process_types *types, const char *type,
                           const void *state, const cb_start_options *options, cb_uuid *id,
                           const char **status, cb_error *e)
{
    static const cb_start_options defaults = { 0 };
    const type_entry *entry = start_type(types, type, e);
    char worker[256];

    options = options ? options : &defaults;
    double lease = options->lease_seconds > 0 ? options->lease_seconds : default_lease;

    if (!entry || (!options->deferred && !may_run_here(db, e)))
        return false;
    OWNED(json_object) json = start_state(entry->type, state, e);
    if (!json)
        return false;
    cb_process_types_caller(types, worker, sizeof worker);
    cb_process_request_options request_options = { .process_id = options->process_id,
                                                   .deadline = options->deadline,
                                                   .batch_id = options->batch_id,
                                                   .leased_by = options->deferred ? NULL : worker,
                                                   .lease_seconds = lease };
    one_process one = { type, json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN),
                        &request_options, id };
    if (!start_registered(db, types, entry, request, &one, e))
        return false;
    const char *how = options->deferred ? process_status_names[STATUS_PENDING]
                                        : run_here(&(here){ db, worker, lease }, types, id);
    if (status)
        *status = how;
    return true;
}

/* ---- a batch ---- */

typedef struct {
    const cb_start_batch_options *options;
    json_object **json; /* owns the texts */
    const char **states;
    size_t n;
    cb_uuid *id;
} process_batch;

#define OWNED_BATCH(name) __attribute__((cleanup(batch_done))) process_batch name

static void batch_done(process_batch *b)
{
    for (size_t i = 0; b->json && i < b->n; i++)
        json_object_put(b->json[i]);
    free(b->json);
    free(b->states);
}

static bool write_states(process_batch *b, const cb_process_type *type, const char *states,
                         cb_error *e)
{
    b->json = calloc(b->n + 1, sizeof *b->json);
    b->states = calloc(b->n + 1, sizeof *b->states);
    if (!b->json || !b->states)
        return cb_fail(e, CB_MEMORY, "out of memory for the states");
    for (size_t i = 0; i < b->n; i++) {
        b->json[i] = start_state(type, states + i * type->state->size, e);
        if (!b->json[i])
            return cb_fail_while(e, "writing state %zu of %zu", i + 1, b->n);
        b->states[i] = json_object_to_json_string_ext(b->json[i], JSON_C_TO_STRING_PLAIN);
    }
    return true;
}

static bool request_batch(cb_db *db, const void *what, cb_error *e)
{
    const process_batch *b = what;

    return cb_start_batch(db, b->options, b->states, b->n, b->id, e);
}

bool cb_process_start_batch_with(cb_db *db, const cb_process_types *types, const char *type,
                                 const void *states, size_t n,
                                 const cb_start_batch_options *options, cb_uuid *id, cb_error *e)
{
    cb_start_batch_options named = options ? *options : (cb_start_batch_options){ 0 };
    const type_entry *entry = start_type(types, type, e);

    named.process_type = type;
    OWNED_BATCH(b) = { .options = &named, .n = n, .id = id };
    return entry && write_states(&b, entry->type, states, e) &&
           start_registered(db, types, entry, request_batch, &b, e);
}
