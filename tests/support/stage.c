/* The stage: a worker of one thread that can be made to die. */
#include "stage.h"

#include <stdio.h>

static void open_types(stage *s, const cb_process_type *const *types, size_t n,
                       const cb_step_route *routes, size_t n_routes)
{
    cb_error e;

    cr_assert(cb_process_types_open(types, n, routes, n_routes, NULL, 0, &s->types, &e), "%s",
              e.message);
    cr_assert(cb_process_register(s->rig.db, cb_process_types_kinds(s->types),
                                  cb_process_types_count(s->types), &e),
              "%s", e.message);
    cr_assert(cb_run_open(s->types, &s->run, &e), "%s", e.message);
}

stage stage_open(const cb_process_type *const *types, size_t n, const cb_step_route *routes,
                 size_t n_routes)
{
    stage s = { .rig = rig_open(), .worker = "stage" };

    open_types(&s, types, n, routes, n_routes);
    return s;
}

void stage_release(stage *s, const cb_process_type *const *types, size_t n,
                   const cb_step_route *routes, size_t n_routes)
{
    cb_run_free(s->run);
    cb_process_types_free(s->types);
    open_types(s, types, n, routes, n_routes);
}

void stage_close(stage *s)
{
    cb_run_free(s->run);
    cb_process_types_free(s->types);
    rig_close(&s->rig);
}

static cb_uuid start(stage *s, const char *type, const char *state, const char *deadline)
{
    cb_process_request_options options = { .deadline = deadline };
    cb_uuid id;
    cb_error e;

    cr_assert(cb_process_request_start(s->rig.db, type, state, &options, &id, &e), "%s", e.message);
    return id;
}

cb_uuid stage_start(stage *s, const char *type, const char *state)
{
    return start(s, type, state, NULL);
}

cb_uuid stage_start_due(stage *s, const char *type, const char *state, double deadline_seconds)
{
    char seconds[50];

    snprintf(seconds, sizeof seconds, "%f", deadline_seconds);
    char *deadline = test_value(
        s->rig.sql, "SELECT commandbus.now() + make_interval(secs => $1::float8)", seconds, NULL);
    cb_uuid id = start(s, type, state, deadline);
    free(deadline);
    return id;
}

/* True while the worker lives. */
static bool became_durable(stage *s)
{
    s->durable++;
    s->crashed = s->crash_after > 0 && s->durable == s->crash_after;
    return !s->crashed;
}

static bool checkpoint(void *arg, cb_process_settlement *settlement)
{
    stage *s = arg;
    cb_error e;

    cr_assert(cb_process_settle(s->rig.db, s->worker, settlement, 1, &e), "%s: %s", e.message,
              settlement->item);
    expect_verdict(CB_SETTLED, settlement->verdict);
    return became_durable(s);
}

static bool is_lost(void *arg)
{
    const stage *s = arg;

    return s->lost_after > 0 && s->durable >= s->lost_after;
}

bool stage_step(stage *s)
{
    static const char *const replies[] = { "payments__replies" };
    static const cb_run_host host = { .checkpoint = checkpoint, .is_lost = is_lost };
    cb_process_claim_options options = { .worker = s->worker,
                                         .kinds = cb_process_types_kinds(s->types),
                                         .n_kinds = cb_process_types_count(s->types),
                                         .vt_seconds = 1,
                                         .reply_queues = replies,
                                         .n_reply_queues = 1,
                                         .reply_grace_seconds = 60 };
    OWNED(cb_process_claim) claim = NULL;
    cb_process_look look;
    cb_error e;

    cr_assert(!s->crashed, "the worker is dead: stage_restart");
    cr_assert(cb_process_claim_due(s->rig.db, &options, 1, &claim, &look, &e), "%s", e.message);
    if (cb_process_claim_count(claim) == 0)
        return false;
    cb_run_process(s->run, cb_process_claim_at(claim, 0), &host, s, &s->last);
    if (s->crashed || (s->last.lost && is_lost(s)))
        return false;
    cr_assert(!s->last.lost);
    cr_assert(cb_process_settle_each(s->rig.db, s->worker, &s->last.settlement, 1, NULL, &e),
              "%s: %s", e.message, s->last.settlement.item);
    expect_verdict(CB_SETTLED, s->last.settlement.verdict);
    return became_durable(s);
}

int stage_go(stage *s)
{
    int runs = 0;

    while (stage_step(s))
        cr_assert(++runs < 2000, "it never comes to rest");
    return runs;
}

void stage_restart(stage *s)
{
    s->crashed = false;
    test_exec(s->rig.sql, "UPDATE commandbus.process SET lease_until = '-infinity', "
                          "wake_at = commandbus.now() WHERE lease_owner IS NOT NULL");
}

void stage_wait(stage *s, double seconds)
{
    char text[50];

    snprintf(text, sizeof text, "%f", seconds);
    free(test_value(s->rig.sql,
                    "UPDATE commandbus.clock SET moved_by = moved_by + "
                    "make_interval(secs => $1::float8) RETURNING 1",
                    text, NULL));
}

cb_claim *stage_receive(stage *s, const char *domain)
{
    OWNED(cb_receiver) receiver = NULL;
    cb_receive_options options = { .worker = "handlers" };
    cb_claim *claim = NULL;
    cb_error e;

    cr_assert(cb_receiver_open(domain, &options, &receiver, &e));
    cr_assert(cb_receive(s->rig.db, receiver, 1, &claim, &e), "%s", e.message);
    cr_assert_eq(cb_claim_count(claim), 1, "there is no command for %s", domain);
    return claim;
}

cb_uuid stage_serve(stage *s, const char *domain, cb_outcome outcome, const char *result,
                    const char *code)
{
    OWNED(cb_claim) claim = stage_receive(s, domain);
    const cb_command *c = cb_claim_at(claim, 0);
    cb_settlement item = { .domain = domain,
                           .command_id = c->command_id,
                           .lease_no = c->lease_no,
                           .outcome = outcome,
                           .result = result,
                           .error_code = code };

    expect_verdict(CB_SETTLED, test_settle_one(s->rig.db, "handlers", item));
    return c->command_id;
}

void stage_respond(stage *s, cb_uuid id, const char *name, const char *payload)
{
    bool accepted = false;
    cb_error e;

    cr_assert(cb_process_respond(s->rig.db, id.text, name, payload, NULL, &accepted, &e), "%s",
              e.message);
    cr_assert(accepted);
}
