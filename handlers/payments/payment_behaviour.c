/* Checking behaviours: two tables, of steps and of fields. */
#include "payment_behaviour.h"

#include <commandbus/handler.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <string.h>

static const char *const steps[] = { "bookRisk", "awaitRiskApproval", "bookFx",  "submitPayment",
                                     "awaitL1",  "awaitL2",           "awaitL3", "awaitL4" };

enum {
    LONGEST_MS = 600000 /* as the simulator has it */
};

/* S0's ProbabilisticBehavior. */
static const struct {
    const char *name;
    double most;
    bool is_percent, is_least, is_longest;
} fields[] = {
    { "failPermanentPct", 100, true, false, false },
    { "failTransientPct", 100, true, false, false },
    { "failBusinessRulePct", 100, true, false, false },
    { "timeoutPct", 100, true, false, false },
    { "pendingPct", 100, true, false, false },
    { "minDurationMs", LONGEST_MS, false, true, false },
    { "maxDurationMs", LONGEST_MS, false, false, true },
};

static bool check_field(const char *step, const char *name, json_object *value, double *percent,
                        double range[2], cb_error *e)
{
    size_t i = 0;

    while (i < CB_COUNT(fields) && strcmp(fields[i].name, name) != 0)
        i++;
    if (i == CB_COUNT(fields))
        return cb_fail(e, CB_INVALID_DATA, "the behaviour of %s has no '%.60s'", step, name);
    bool is_number = json_object_is_type(value, json_type_int) ||
                     (fields[i].is_percent && json_object_is_type(value, json_type_double));
    double number = is_number ? json_object_get_double(value) : NAN;
    if (!(number >= 0 && number <= fields[i].most))
        return cb_fail(e, CB_INVALID_DATA, "%s of %s must be a number from 0 to %g", name, step,
                       fields[i].most);
    *percent += fields[i].is_percent ? number : 0;
    if (fields[i].is_least || fields[i].is_longest)
        range[fields[i].is_longest] = number;
    return true;
}

static bool check_step(const char *step, json_object *said, cb_error *e)
{
    double percent = 0, range[2] = { 0, 0 };

    if (!json_object_is_type(said, json_type_object))
        return cb_fail(e, CB_INVALID_DATA, "the behaviour of %s must be a JSON object", step);
    json_object_object_foreach(said, name, value)
    {
        if (!check_field(step, name, value, &percent, range, e))
            return false;
    }
    if (percent > 100.000001)
        return cb_fail(e, CB_INVALID_DATA, "the percentages of %s add up to %g", step, percent);
    return range[0] <= range[1] ||
           cb_fail(e, CB_INVALID_DATA, "minDurationMs of %s is more than maxDurationMs", step);
}

bool behaviour_check(json_object *behaviour, cb_error *e)
{
    if (!json_object_is_type(behaviour, json_type_object))
        return cb_fail(e, CB_INVALID_DATA, "a behaviour is a JSON object");
    json_object_object_foreach(behaviour, step, said)
    {
        size_t i = 0;
        while (i < CB_COUNT(steps) && strcmp(steps[i], step) != 0)
            i++;
        if (i == CB_COUNT(steps))
            return cb_fail(e, CB_INVALID_DATA, "a behaviour has no step '%.60s'", step);
        if (!check_step(steps[i], said, e))
            return false;
    }
    return true;
}
