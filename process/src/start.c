/* Starting a process from a program: here and now, or left to the workers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <commandbus/run.h>

#include "types.h"

static const double default_lease = 60;

typedef struct {
    cb_db *db;
    const char *worker;
} here;

static bool checkpoint(void *arg, cb_process_settlement *settlement)
{
    const here *h = arg;
    cb_error e;

    return cb_process_settle(h->db, h->worker, settlement, 1, &e) &&
           (settlement->verdict == CB_SETTLED || settlement->verdict == CB_ALREADY);
}

/* A name for people; the fence is the lease's number. */
static void name_of_caller(char *to, size_t size)
{
    char host[200] = "host";

    gethostname(host, sizeof host - 1);
    snprintf(to, size, "%s-%d-%s", host, (int)getpid(), cb_uuid_new().text + 28);
}

static const char *status_word(const char *status)
{
    static const char *const words[] = { "PENDING",
                                         "EXECUTING",
                                         "WAITING_FOR_REPLY",
                                         "WAITING_FOR_ASYNC",
                                         "WAITING_FOR_RETRY",
                                         "WAITING_FOR_TSQ",
                                         "COMPENSATING",
                                         "COMPENSATED",
                                         "COMPLETED",
                                         "CANCELED",
                                         "FAILED" };

    for (size_t i = 0; i < CB_COUNT(words); i++) {
        if (status && strcmp(words[i], status) == 0)
            return words[i];
    }
    return "EXECUTING";
}

/* It is started: whatever goes wrong from here on, the workers take it up when the lease ends. */
static const char *run_here(const here *h, const cb_process_types *types, double lease_seconds,
                            const cb_uuid *id)
{
    cb_run_host host = { .checkpoint = checkpoint, .lease_seconds = lease_seconds };
    OWNED(cb_process_claim) claim = NULL;
    OWNED(cb_run) run = NULL;
    cb_run_result result;
    cb_error e;

    if (!cb_process_read(h->db, id->text, &claim, &e) || cb_process_claim_count(claim) != 1 ||
        !cb_run_open(types, &run, &e))
        return "EXECUTING";
    cb_run_process(run, cb_process_claim_at(claim, 0), &host, (void *)h, &result);
    if (result.lost || !cb_process_settle_each(h->db, h->worker, &result.settlement, 1, NULL, &e))
        return "EXECUTING";
    return status_word(result.status);
}

/* Registers the type if nobody has yet. */
static bool request(cb_db *db, const type_entry *type, const cb_process_kind *kind,
                    const char *state, const cb_process_request_options *o, cb_uuid *id,
                    cb_error *e)
{
    if (cb_process_request_start(db, type->type->name, state, o, id, e))
        return true;
    return e->code == CB_UNKNOWN_PROCESS_TYPE && cb_process_register(db, kind, 1, e) &&
           cb_process_request_start(db, type->type->name, state, o, id, e);
}

bool cb_process_start_with(cb_db *db, const cb_process_types *types, const char *type,
                           const void *state, const cb_start_options *options, cb_uuid *id,
                           const char **status, cb_error *e)
{
    static const cb_start_options defaults = { 0 };
    const type_entry *entry = types_find(types, type);
    char worker[256];

    options = options ? options : &defaults;
    double lease = options->lease_seconds > 0 ? options->lease_seconds : default_lease;

    if (!entry)
        return cb_fail(e, CB_UNKNOWN_PROCESS_TYPE, "this program has no process type '%s'", type);
    OWNED(json_object) json = cb_fields_write(entry->type->state, state);
    if (!json)
        return cb_fail(e, CB_MEMORY, "no memory for the state");
    name_of_caller(worker, sizeof worker);
    cb_process_request_options request_options = { .process_id = options->process_id,
                                                   .deadline = options->deadline,
                                                   .batch_id = options->batch_id,
                                                   .leased_by = options->deferred ? NULL : worker,
                                                   .lease_seconds = lease };
    if (!request(db, entry, &types->kinds[entry - types->entries],
                 json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN), &request_options, id,
                 e))
        return false;
    const char *how =
        options->deferred ? "PENDING" : run_here(&(here){ db, worker }, types, lease, id);
    if (status)
        *status = how;
    return true;
}
