/* The kit: a worker of one thread that can be made to die, and a database of its own. */
#include <commandbus/receive.h>
#include <commandbus/run.h>
#include <commandbus/test.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conninfo.h"

enum {
    MOST_RUNS = 2000 /* without coming to rest */
};

DEFINE_OWNED(PGresult, PQclear)

/* How attempts of a step end without being made. */
struct cb_test_behaviour {
    const char *step;
    int times; /* that are left */
    cb_test_answer answer;
};

/* ---- a database of its own ---- */

/* CREATE and DROP DATABASE want no transaction and take no parameters; the name is ours. */
static bool run_on_server(cb_test *t, const char *what, const char *how, cb_error *e)
{
    char sql[200];

    snprintf(sql, sizeof sql, "%s DATABASE %s %s", what, t->database, how);
    OWNED(PGresult) result = PQexec(cb_db_conn(t->server), sql);
    return PQresultStatus(result) == PGRES_COMMAND_OK ||
           cb_fail(e, CB_SERVER, "%s: %.300s", sql, PQresultErrorMessage(result));
}

static void name_database(cb_test *t)
{
    cb_uuid unique = cb_uuid_new();

    for (char *c = unique.text; *c; c++)
        *c = *c == '-' ? '_' : *c;
    snprintf(t->database, sizeof t->database, "commandbus_kit_%s", unique.text);
}

static bool make_database(cb_test *t, const char *url, cb_error *e)
{
    cb_migrate_report report;

    if (!url)
        url = getenv("COMMANDBUS_TEST_URL");
    if (!url || !*url)
        return cb_fail(e, CB_MISUSE,
                       "no server to test on: set COMMANDBUS_TEST_URL to one where the login may "
                       "create databases");
    if (!cb_db_open_named(url, "commandbus-test", &t->server, e))
        return false;
    name_database(t);
    if (!run_on_server(t, "CREATE", "TEMPLATE template0", e)) {
        t->database[0] = '\0';
        return false;
    }
    char *conninfo = cb_test_conninfo(url, t->database);
    bool ok = (conninfo || cb_fail(e, CB_MEMORY, "out of memory")) &&
              cb_db_open_named(conninfo, "commandbus-test", &t->db, e) &&
              cb_migrate(t->db, &report, e);
    free(conninfo);
    return ok;
}

/* One statement with n parameters; *ret may be NULL. */
static bool ask(cb_test *t, const char *sql, const char *const values[], size_t n, PGresult **ret,
                cb_error *e)
{
    PGresult *result = NULL;

    if (!cb_db_ask(t->db, sql, values, n, &result, e))
        return false;
    if (ret)
        *ret = result;
    else
        PQclear(result);
    return true;
}

/* ---- the types ---- */

static bool register_domains(cb_test *t, const cb_test_options *o, cb_error *e)
{
    for (size_t i = 0; i < o->n_types; i++) {
        if (!cb_domain_register(t->db, o->types[i]->domain, o->types[i]->reply_queue, e))
            return false;
    }
    for (size_t i = 0; o->domains && o->domains[i]; i++) {
        if (!cb_domain_register(t->db, o->domains[i], NULL, e))
            return false;
    }
    return true;
}

/* Where replies to the processes arrive: what the type says, or <domain>__replies. */
static bool list_reply_queues(cb_test *t, cb_error *e)
{
    enum {
        ROOM = 80
    };
    const cb_process_kind *kinds = cb_process_types_kinds(t->types);
    size_t n = cb_process_types_count(t->types);

    free(t->reply_queues);
    free(t->queue_names);
    t->n_reply_queues = 0;
    t->reply_queues = calloc(n + 1, sizeof *t->reply_queues);
    t->queue_names = calloc(n + 1, ROOM);
    if (!t->reply_queues || !t->queue_names)
        return cb_fail(e, CB_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) {
        char *name = t->queue_names + i * ROOM;
        bool is_known = false;
        snprintf(name, ROOM, "%s%s", kinds[i].reply_queue ? kinds[i].reply_queue : kinds[i].domain,
                 kinds[i].reply_queue ? "" : "__replies");
        for (size_t k = 0; k < t->n_reply_queues; k++)
            is_known = is_known || strcmp(t->reply_queues[k], name) == 0;
        if (!is_known)
            t->reply_queues[t->n_reply_queues++] = name;
    }
    return true;
}

static void forget_types(cb_test *t)
{
    cb_run_free(t->run);
    cb_process_types_free(t->types);
    t->run = NULL;
    t->types = NULL;
    t->last = (cb_run_result){ 0 };
}

bool cb_test_release_with(cb_test *t, const cb_test_options *options, cb_error *e)
{
    forget_types(t);
    return cb_process_types_open(options->types, options->n_types, options->routes,
                                 options->n_routes, options->settings, options->n_settings,
                                 &t->types, e) &&
           register_domains(t, options, e) &&
           cb_process_register(t->db, cb_process_types_kinds(t->types),
                               cb_process_types_count(t->types), e) &&
           list_reply_queues(t, e) && cb_run_open(t->types, &t->run, e);
}

bool cb_test_open_with(cb_test *t, const cb_test_options *options, cb_error *e)
{
    *t = (cb_test){ .db = options->db, .worker = "test" };
    if (!t->db && !make_database(t, options->server_url, e))
        return false;
    /* A server that has just started gives expired leases to nobody for a visibility timeout. */
    return ask(t, "SELECT pg_sleep_until(pg_postmaster_start_time() + interval '1.1 seconds')",
               NULL, 0, NULL, e) &&
           cb_test_release_with(t, options, e);
}

void cb_test_close(cb_test *t)
{
    forget_types(t);
    free(t->reply_queues);
    free(t->queue_names);
    free(t->behaviours);
    if (t->server) {
        cb_db_free(t->db);
        if (t->database[0])
            (void)!run_on_server(t, "DROP", "WITH (FORCE)", &(cb_error){ 0 });
        cb_db_free(t->server);
    }
    *t = (cb_test){ 0 };
}

/* ---- processes ---- */

static bool start(cb_test *t, const char *type, const char *state, const char *deadline,
                  cb_uuid *id, cb_error *e)
{
    cb_process_request_options options = { .deadline = deadline };

    return cb_process_request_start(t->db, type, state, &options, id, e);
}

bool cb_test_start(cb_test *t, const char *type, const char *state, cb_uuid *id, cb_error *e)
{
    return start(t, type, state, NULL, id, e);
}

bool cb_test_start_due(cb_test *t, const char *type, const char *state, double deadline_seconds,
                       cb_uuid *id, cb_error *e)
{
    OWNED(cb_rows) moment = NULL;
    char interval[60];

    snprintf(interval, sizeof interval, "%f seconds", deadline_seconds);
    return cb_process_moment(t->db, interval, &moment, e) &&
           start(t, type, state, cb_rows_get(moment, 0, "moment"), id, e);
}

/* True while the worker lives. */
static bool became_durable(cb_test *t)
{
    t->durable++;
    t->crashed = t->crash_after > 0 && t->durable == t->crash_after;
    return !t->crashed;
}

static bool is_settled(const cb_process_settlement *s, cb_error *e)
{
    return s->verdict == CB_SETTLED ||
           cb_fail(e, CB_INVALID_OPERATION, "a run of process %s was not settled but is %s",
                   s->process_id.text, cb_verdict_name(s->verdict));
}

static bool checkpoint(void *arg, cb_process_settlement *settlement)
{
    cb_test *t = arg;

    return cb_process_settle(t->db, t->worker, settlement, 1, t->failing) &&
           is_settled(settlement, t->failing) && became_durable(t);
}

static bool is_lost(void *arg)
{
    const cb_test *t = arg;

    return t->lost_after > 0 && t->durable >= t->lost_after;
}

static struct cb_test_behaviour *behaviour_of(cb_test *t, const char *step)
{
    for (size_t i = 0; i < t->n_behaviours; i++) {
        if (strcmp(t->behaviours[i].step, step) == 0)
            return &t->behaviours[i];
    }
    return NULL;
}

static bool instead(void *arg, const char *name, cb_settlement *out)
{
    struct cb_test_behaviour *b = behaviour_of(arg, name);

    if (!b || b->times == 0)
        return false;
    b->times--;
    *out = (cb_settlement){ .outcome = b->answer.outcome,
                            .error_code = b->answer.error_code ? b->answer.error_code : "INJECTED",
                            .error_message = b->answer.error_message };
    return true;
}

/* Runs one that is claimed, and settles what it came to. */
static bool run_one(cb_test *t, const cb_process_row *row, bool *ran, cb_error *e)
{
    static const cb_run_host host = { .checkpoint = checkpoint,
                                      .instead = instead,
                                      .is_lost = is_lost };
    cb_error why = { 0 };

    t->failing = &why;
    cb_run_process(t->run, row, &host, t, &t->last);
    t->failing = NULL;
    if (t->crashed || (t->last.lost && is_lost(t)))
        return true;
    if (t->last.lost)
        return cb_fail(e, why.code, "a checkpoint failed: %s", why.message);
    if (!cb_process_settle_each(t->db, t->worker, &t->last.settlement, 1, NULL, e) ||
        !is_settled(&t->last.settlement, e))
        return false;
    *ran = became_durable(t);
    return true;
}

bool cb_test_step(cb_test *t, bool *ran, cb_error *e)
{
    cb_process_claim_options options = { .worker = t->worker,
                                         .kinds = cb_process_types_kinds(t->types),
                                         .n_kinds = cb_process_types_count(t->types),
                                         .vt_seconds = 1,
                                         .reply_queues = t->reply_queues,
                                         .n_reply_queues = t->n_reply_queues,
                                         .reply_grace_seconds = 60 };
    OWNED(cb_process_claim) claim = NULL;
    cb_process_look look;
    bool nobody_asks;

    if (!ran)
        ran = &nobody_asks;
    *ran = false;
    if (t->crashed)
        return cb_fail(e, CB_MISUSE, "the worker is dead: cb_test_restart");
    if (!cb_process_claim_due(t->db, &options, 1, &claim, &look, e))
        return false;
    return cb_process_claim_count(claim) == 0 || run_one(t, cb_process_claim_at(claim, 0), ran, e);
}

bool cb_test_go(cb_test *t, int *runs, cb_error *e)
{
    bool ran = true;
    int n = 0;

    for (; ran && n < MOST_RUNS; n += ran) {
        if (!cb_test_step(t, &ran, e))
            return false;
    }
    if (runs)
        *runs = n;
    return n < MOST_RUNS ||
           cb_fail(e, CB_INVALID_OPERATION, "it never comes to rest: %d runs", MOST_RUNS);
}

bool cb_test_restart(cb_test *t, cb_error *e)
{
    t->crashed = false;
    return ask(t,
               "UPDATE commandbus.process SET lease_until = '-infinity', "
               "wake_at = commandbus.now() WHERE lease_owner IS NOT NULL",
               NULL, 0, NULL, e);
}

bool cb_test_wait(cb_test *t, double seconds, cb_error *e)
{
    char text[50];
    const char *const values[] = { text };

    snprintf(text, sizeof text, "%f", seconds);
    return ask(t,
               "UPDATE commandbus.clock SET moved_by = moved_by + "
               "make_interval(secs => $1::float8)",
               values, 1, NULL, e);
}

/* ---- the others ---- */

static const char handlers[] = "handlers"; /* the worker that claims commands */

bool cb_test_receive(cb_test *t, const char *domain, cb_claim **ret, cb_error *e)
{
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) claim = NULL;
    cb_receive_options options = { .worker = handlers };

    if (!cb_receiver_open(domain, &options, &receiver, e) ||
        !cb_receive(t->db, receiver, 1, &claim, e))
        return false;
    if (cb_claim_count(claim) != 1)
        return cb_fail(e, CB_INVALID_DATA, "there is no command for %s", domain);
    *ret = cb_claim_take(&claim);
    return true;
}

const cb_command *cb_test_claim_command(const cb_claim *claim)
{
    return cb_claim_at(claim, 0);
}

void cb_test_claim_free(cb_claim *claim)
{
    cb_claim_free(claim);
}

bool cb_test_serve(cb_test *t, const char *domain, const cb_test_answer *answer, cb_uuid *id,
                   cb_error *e)
{
    OWNED(cb_claim) claim = NULL;

    if (!cb_test_receive(t, domain, &claim, e))
        return false;
    const cb_command *c = cb_claim_at(claim, 0);
    cb_settlement item = { .domain = domain,
                           .command_id = c->command_id,
                           .lease_no = c->lease_no,
                           .outcome = answer->outcome,
                           .result = answer->result,
                           .error_code = answer->error_code,
                           .error_message = answer->error_message };
    if (answer->command_type && strcmp(answer->command_type, c->command_type) != 0)
        return cb_fail(e, CB_INVALID_DATA, "expected a command %s, found %s", answer->command_type,
                       c->command_type);
    if (!cb_settle(t->db, handlers, &item, 1, e))
        return false;
    if (id)
        *id = c->command_id;
    return item.verdict == CB_SETTLED ||
           cb_fail(e, CB_INVALID_OPERATION, "command %s was not settled but is %s",
                   c->command_id.text, cb_verdict_name(item.verdict));
}

bool cb_test_inject(cb_test *t, const char *step, int times, const cb_test_answer *answer,
                    cb_error *e)
{
    struct cb_test_behaviour *b = behaviour_of(t, step);

    if (!b) {
        b = realloc(t->behaviours, (t->n_behaviours + 1) * sizeof *b);
        if (!b)
            return cb_fail(e, CB_MEMORY, "out of memory");
        t->behaviours = b;
        b = &t->behaviours[t->n_behaviours++];
    }
    *b = (struct cb_test_behaviour){ step, times, *answer };
    return true;
}

bool cb_test_respond(cb_test *t, const char *process_id, const char *name, const char *payload,
                     cb_error *e)
{
    bool accepted = false;

    return cb_process_respond(t->db, process_id, name, payload, NULL, &accepted, e) &&
           (accepted || cb_fail(e, CB_INVALID_OPERATION, "response '%s' was not accepted", name));
}

/* ---- what is to be seen ---- */

/* sql gives one text for $1, the process, and $2 (NULL: there is none). */
static bool expect(cb_test *t, const char *what, const char *sql, const char *process_id,
                   const char *second, const char *expected, cb_error *e)
{
    const char *const values[] = { process_id, second };
    OWNED(PGresult) result = NULL;

    if (!ask(t, sql, values, second ? 2 : 1, &result, e))
        return false;
    if (PQntuples(result) == 0)
        return cb_fail(e, CB_INVALID_DATA, "there is no process %s", process_id);
    const char *found = PQgetvalue(result, 0, 0);
    return strcmp(found, expected) == 0 ||
           cb_fail(e, CB_INVALID_DATA, "%s of process %s: expected '%.180s', found '%.180s'", what,
                   process_id, expected, found);
}

bool cb_test_expect_status(cb_test *t, const char *process_id, const char *expected, cb_error *e)
{
    return expect(
        t, "status",
        "SELECT concat_ws(' ', status, error_code) FROM commandbus.process WHERE process_id = $1",
        process_id, NULL, expected, e);
}

bool cb_test_expect_state(cb_test *t, const char *process_id, const char *field,
                          const char *expected, cb_error *e)
{
    return expect(t, field,
                  "SELECT state #>> string_to_array($2, '.') FROM commandbus.process "
                  "WHERE process_id = $1",
                  process_id, field, expected, e);
}

bool cb_test_expect_history(cb_test *t, const char *process_id, const char *expected, cb_error *e)
{
    return expect(t, "history",
                  "SELECT string_agg(concat_ws(' ', kind, name, status), ', ' ORDER BY ordinal) "
                  "FROM commandbus.process_history WHERE process_id = $1",
                  process_id, NULL, expected, e);
}

bool cb_test_expect_commands(cb_test *t, const char *process_id, const char *expected, cb_error *e)
{
    return expect(t, "commands",
                  "SELECT string_agg(domain || '/' || command_type || ' ' || status, ', ' "
                  "ORDER BY created_at, msg_id) "
                  "FROM commandbus.command_metadata WHERE correlation_id = $1",
                  process_id, NULL, expected, e);
}

bool cb_test_expect_events(cb_test *t, const char *process_id, const char *expected, cb_error *e)
{
    return expect(t, "events",
                  "SELECT string_agg(event, ' ' ORDER BY at, id) FROM commandbus.process_event "
                  "WHERE process_id = $1",
                  process_id, NULL, expected, e);
}
