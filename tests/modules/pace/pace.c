/* Processes that do nothing, for benchmarks: what is measured is the runtime. */
#include <commandbus/module.h>
#include <commandbus/process.h>
#include <stdio.h>

typedef struct {
    char *debit_account, *credit_account, *amount;
    char *contract_id, *reference;
    int64_t steps; /* how many, of Inline */
    int64_t done;
    bool valid, enriched, executed;
} payment;

CB_FIELDS(payment_fields, payment, CB_FIELD_AS(payment, debit_account, CB_TEXT, "debitAccount"),
          CB_FIELD_AS(payment, credit_account, CB_TEXT, "creditAccount"),
          CB_FIELD(payment, amount, CB_TEXT),
          CB_FIELD_AS(payment, contract_id, CB_TEXT, "contractId"),
          CB_FIELD(payment, reference, CB_TEXT), CB_FIELD(payment, steps, CB_INT),
          CB_FIELD(payment, done, CB_INT), CB_FIELD(payment, valid, CB_BOOL),
          CB_FIELD(payment, enriched, CB_BOOL), CB_FIELD(payment, executed, CB_BOOL));

static cb_outcome validate(cb_context *ctx, void *state)
{
    (void)ctx;
    ((payment *)state)->valid = true;
    return CB_SUCCESS;
}

static cb_outcome enrich(cb_context *ctx, void *state)
{
    (void)ctx;
    ((payment *)state)->enriched = true;
    return CB_SUCCESS;
}

static cb_outcome execute_payment(cb_context *ctx, void *state)
{
    (void)ctx;
    ((payment *)state)->executed = true;
    return CB_SUCCESS;
}

static cb_outcome count(cb_context *ctx, void *state)
{
    (void)ctx;
    ((payment *)state)->done++;
    return CB_SUCCESS;
}

static bool request(const void *state, json_object *data)
{
    const payment *pay = state;

    json_object_object_add(data, "amount", json_object_new_string(pay->amount ? pay->amount : ""));
    return true;
}

static bool take_text(char **to, json_object *result, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(result, key, &value) &&
           cb_text_set(to, json_object_get_string(value));
}

static bool take_fx(void *state, json_object *result)
{
    return take_text(&((payment *)state)->contract_id, result, "contractId");
}

static bool take_risk(void *state, json_object *result)
{
    return take_text(&((payment *)state)->reference, result, "reference");
}

/* S4's shape. */
static cb_flow five(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "validate", validate, .local = true));
    CB_DO(cb_command_step(p, "bookFx", request, take_fx, .domain = "fx", .command_type = "BookFx",
                          .compensate_command = "ReleaseFx"));
    CB_DO(cb_step(p, "enrich", enrich, .local = true));
    CB_DO(cb_command_step(p, "bookRisk", request, take_risk, .domain = "risk",
                          .command_type = "BookRisk", .compensate_command = "ReleaseRisk"));
    CB_DO(cb_step(p, "execute", execute_payment));
    return CB_DONE;
}

static cb_flow locals(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "validate", validate, .local = true));
    CB_DO(cb_step(p, "enrich", enrich, .local = true));
    CB_DO(cb_step(p, "execute", execute_payment, .local = true));
    return CB_DONE;
}

static cb_flow many(cb_process *p, void *state, bool local)
{
    const payment *pay = state;
    int64_t n = pay->steps;

    for (int64_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "step-%d", (int)i);
        CB_DO(cb_step(p, name, count, .local = local));
    }
    return CB_DONE;
}

static cb_flow inline_local(cb_process *p, void *state)
{
    return many(p, state, true);
}

static cb_flow inline_durable(cb_process *p, void *state)
{
    return many(p, state, false);
}

#define TYPE(type, run)                                                                  \
    {                                                                                    \
        .name = (type), .domain = "payments", .state = &payment_fields, .execute = (run) \
    }
static const cb_process_type type_list[] = {
    TYPE("Five", five),
    TYPE("Locals", locals),
    TYPE("Inline", inline_local),
    TYPE("InlineDurable", inline_durable),
};
static const cb_process_type *const types[] = { &type_list[0], &type_list[1], &type_list[2],
                                                &type_list[3] };

CB_MODULE(pace, .processes = types, .n_processes = CB_COUNT(types));
