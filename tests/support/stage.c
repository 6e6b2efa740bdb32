/* The stage: the kit, with failures that end the test. */
#include "stage.h"

/* Every call of the kit that can fail. */
#define stage_do(call, ...)                                  \
    do {                                                     \
        cb_error e_ = { 0 };                                 \
        cr_assert(call(__VA_ARGS__, &e_), "%s", e_.message); \
    } while (0)

stage stage_open(const cb_process_type *const *types, size_t n, const cb_step_route *routes,
                 size_t n_routes)
{
    stage s = { 0 };

    bus_open();
    cb_test_options options = {
        .types = types, .n_types = n, .routes = routes, .n_routes = n_routes, .db = bus.db
    };
    stage_do(cb_test_open_with, &s.kit, &options);
    s.kit.worker = "stage";
    return s;
}

void stage_release(stage *s, const cb_process_type *const *types, size_t n,
                   const cb_step_route *routes, size_t n_routes)
{
    cb_test_options options = {
        .types = types, .n_types = n, .routes = routes, .n_routes = n_routes
    };

    stage_do(cb_test_release_with, &s->kit, &options);
}

void stage_close(stage *s)
{
    cb_test_close(&s->kit);
    bus_close();
}

cb_flow stage_nothing(cb_process *p, void *state)
{
    (void)p, (void)state;
    return CB_DONE;
}

cb_uuid stage_start(stage *s, const char *type, const char *state)
{
    cb_uuid id;

    stage_do(cb_test_start, &s->kit, type, state, &id);
    return id;
}

cb_uuid stage_start_due(stage *s, const char *type, const char *state, double deadline_seconds)
{
    cb_uuid id;

    stage_do(cb_test_start_due, &s->kit, type, state, deadline_seconds, &id);
    return id;
}

bool stage_step(stage *s)
{
    bool ran;

    stage_do(cb_test_step, &s->kit, &ran);
    return ran;
}

int stage_go(stage *s)
{
    int runs;

    stage_do(cb_test_go, &s->kit, &runs);
    return runs;
}

void stage_restart(stage *s)
{
    stage_do(cb_test_restart, &s->kit);
}

void stage_wait(stage *s, double seconds)
{
    stage_do(cb_test_wait, &s->kit, seconds);
}

cb_claim *stage_receive(stage *s, const char *domain)
{
    cb_claim *claim = NULL;

    stage_do(cb_test_receive, &s->kit, domain, &claim);
    return claim;
}

cb_uuid stage_serve(stage *s, const char *domain, cb_outcome outcome, const char *result,
                    const char *code)
{
    cb_test_answer answer = { .outcome = outcome, .result = result, .error_code = code };
    cb_uuid id;

    stage_do(cb_test_serve, &s->kit, domain, &answer, &id);
    return id;
}

void stage_respond(stage *s, cb_uuid id, const char *name, const char *payload)
{
    stage_do(cb_test_respond, &s->kit, id.text, name, payload);
}

void stage_pass(stage *s, double seconds)
{
    stage_wait(s, seconds);
    stage_go(s);
}

bool stage_is_over(cb_uuid id)
{
    return test_number(bus.conn,
                       "SELECT count(*) FROM commandbus.process WHERE process_id = $1 AND "
                       "completed_at IS NOT NULL",
                       id.text, NULL) > 0;
}

bool stage_is_queued(const char *domain)
{
    return test_number(bus.conn,
                       "SELECT count(*) FROM commandbus.command_metadata WHERE domain = $1 AND "
                       "status = 'PENDING'",
                       domain, NULL) > 0;
}

void stage_reply(cb_uuid process, cb_uuid command, const char *rest)
{
    free(test_value(
        bus.conn,
        "SELECT pgmq.send('payments__replies', jsonb_build_object('command_id', $1::text, "
        "'correlation_id', $2::text) || $3::jsonb)",
        command.text, process.text, rest, NULL));
}

void stage_tsq(const char *call, const char *domain, cb_uuid command)
{
    char *sql = NULL;

    cr_assert(asprintf(&sql, "SELECT commandbus.%s($1, $2::uuid, 'olga', 'reason')", call) > 0);
    free(test_value(bus.conn, sql, domain, command.text, NULL));
    free(sql);
}
