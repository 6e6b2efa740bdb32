/* The tour: see tour.h. */
#include "tour.h"

#include <stdio.h>

tour_script tour_plays;
char tour_calls[4000];

static void tour_add(tour *t, const char *word)
{
    char *longer = NULL;

    cr_assert(asprintf(&longer, "%s%s%s", t->trail ? t->trail : "", t->trail ? " " : "", word) > 0);
    free(t->trail);
    t->trail = longer;
}

/* One function of the process: it leaves a trace in the state and in the memory of the test. */
static cb_outcome tour_play(cb_context *ctx, tour *t, const char *name, cb_outcome outcome)
{
    size_t used = strlen(tour_calls);

    snprintf(tour_calls + used, sizeof tour_calls - used, "%s%s", used ? " " : "", name);
    tour_add(t, name);
    if (tour_plays.during)
        tour_plays.during(name);
    switch (outcome) {
    case CB_TRANSIENT:
        return cb_transient(ctx, "E_AGAIN", "%s: not now", name);
    case CB_PERMANENT:
        return cb_permanent(ctx, "E_NEVER", "%s: never", name);
    case CB_BUSINESS_RULE:
        return cb_business_rule(ctx, "E_RULE", "%s: against the rules", name);
    case CB_INTERRUPTED:
        return cb_interrupted(ctx);
    default:
        return CB_SUCCESS;
    }
}

#define FUNCTION(name)                                        \
    static cb_outcome name(cb_context *ctx, void *state)      \
    {                                                         \
        return tour_play(ctx, state, #name, tour_plays.name); \
    }
FUNCTION(prepare)
FUNCTION(quote)
FUNCTION(finish)
FUNCTION(undo_prepare)
FUNCTION(undo_quote)
FUNCTION(undo_fx)

static bool ask_risk(const void *state, json_object *data)
{
    const tour *t = state;

    json_object_object_add(data, "trail", json_object_new_string(t->trail ? t->trail : ""));
    return !tour_plays.refuse_request;
}

/* False unless it is {"id": n}. */
static bool take_id(json_object *result, int64_t *to)
{
    json_object *id = NULL;

    if (!json_object_object_get_ex(result, "id", &id) || !json_object_is_type(id, json_type_int))
        return false;
    *to = json_object_get_int64(id);
    return true;
}

static bool take_risk(void *state, json_object *result)
{
    tour *t = state;

    tour_add(t, "risk");
    return !tour_plays.refuse_result && take_id(result, &t->risk_id);
}

static bool take_fx(void *state, json_object *result)
{
    tour *t = state;

    tour_add(t, "fx");
    return take_id(result, &t->fx_id);
}

static bool tour_may_go(const void *state)
{
    return ((const tour *)state)->gone;
}

static cb_flow tour_execute(cb_process *p, void *state)
{
    const tour *t = state;

    CB_DO(cb_step(p, tour_plays.renamed ? "prepared" : "prepare", prepare,
                  .compensate = undo_prepare, .max_attempts = tour_plays.undo_attempts,
                  .retry_delay_ms = 10000));
    CB_DO(cb_command_step(p, "bookRisk", ask_risk, take_risk, .domain = "risk",
                          .command_type = "BookRisk", .compensate_command = "ReleaseRisk",
                          .timeout_seconds = 17, .max_attempts = 2,
                          .wait_timeout_ms = CB_MINUTES(10)));
    CB_DO(cb_step(p, "quote", quote, .local = true,
                  .compensate = tour_plays.without_undo_of_quote ? NULL : undo_quote));
    CB_DO(cb_command_step(p, "bookFx", NULL, take_fx, .domain = "fx", .command_type = "BookFx",
                          .compensate = undo_fx));
    CB_DO(cb_step(p, "finish", finish));
    if (t->wait_at_last)
        CB_DO(cb_wait(p, "go", tour_may_go));
    if (t->decline)
        return cb_business_failure(p, "DECLINED", "the customer does not want it");
    return CB_DONE;
}

/* ---- what arrives, and how it ends ---- */

static bool tour_take_note(void *state, json_object *payload)
{
    json_object *word = NULL;

    if (!json_object_object_get_ex(payload, "word", &word))
        return false;
    tour_add(state, json_object_get_string(word));
    if (tour_plays.during)
        tour_plays.during("note");
    return true;
}

static bool tour_take_go(void *state, json_object *payload)
{
    (void)payload;
    ((tour *)state)->gone = true;
    return true;
}

static void on_completed(cb_process *p, void *state)
{
    (void)p;
    tour_add(state, "completed");
}

static void on_canceled(cb_process *p, void *state)
{
    (void)p;
    tour_add(state, "canceled");
}

static const cb_response responses[] = { { "note", tour_take_note }, { "go", tour_take_go } };

const cb_process_type tour_type = { .name = "Tour",
                                    .domain = "payments",
                                    .state = &tour_fields,
                                    .execute = tour_execute,
                                    .responses = responses,
                                    .n_responses = CB_COUNT(responses),
                                    .on_completed = on_completed,
                                    .on_canceled = on_canceled };

/* ---- on the stage ---- */

stage tour_open(const cb_process_type *type)
{
    return stage_open(&type, 1, NULL, 0);
}

cb_uuid tour_book(stage *s, const char *domain)
{
    return stage_serve(s, domain, CB_SUCCESS,
                       strcmp(domain, "risk") == 0 ? "{\"id\":7}" : "{\"id\":8}", NULL);
}

cb_uuid tour_at_risk(stage *s, const char *state)
{
    cb_uuid id = stage_start(s, "Tour", state);

    stage_go(s);
    return id;
}

cb_uuid tour_at_fx(stage *s, const char *state)
{
    cb_uuid id = tour_at_risk(s, state);

    tour_book(s, "risk");
    stage_go(s);
    return id;
}

void tour_retry(cb_uuid id)
{
    cb_error e;

    cr_assert(cb_process_retry(bus.db, id.text, "olga", "again", NULL, &e), "%s", e.message);
}

void tour_cancel(cb_uuid id, bool undo)
{
    cb_error e;

    cr_assert(cb_process_cancel(bus.db, id.text, "olga", "enough", undo, &e), "%s", e.message);
}

void tour_complete(cb_uuid id, const char *overrides)
{
    cb_error e;

    cr_assert(cb_process_complete(bus.db, id.text, "olga", "done by hand", overrides, &e), "%s",
              e.message);
}
