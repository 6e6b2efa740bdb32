/* Reading, writing and rolling behaviours. */
#include "behaviour.h"

#include <commandbus/handler.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static const char *const roll_names[ROLLS] = {
    [ROLL_PERMANENT] = "failPermanent",
    [ROLL_TRANSIENT] = "failTransient",
    [ROLL_BUSINESS_RULE] = "failBusinessRule",
    [ROLL_TIMEOUT] = "timeout",
    [ROLL_PENDING] = "pending",
    [ROLL_DECLINED] = "declined",
    [ROLL_OK] = "ok",
};

/* The same as S0 calls them. */
static const char *const roll_names_of_s0[ROLL_OK] = {
    [ROLL_PERMANENT] = "failPermanentPct",
    [ROLL_TRANSIENT] = "failTransientPct",
    [ROLL_BUSINESS_RULE] = "failBusinessRulePct",
    [ROLL_TIMEOUT] = "timeoutPct",
    [ROLL_PENDING] = "pendingPct",
    [ROLL_DECLINED] = "declinedPct",
};

const behaviour behaviour_chaos = {
    .percent = { [ROLL_PERMANENT] = 1,
                 [ROLL_TRANSIENT] = 10,
                 [ROLL_BUSINESS_RULE] = 3,
                 [ROLL_TIMEOUT] = 2,
                 [ROLL_PENDING] = 5 },
};

/* What is not a percentage. */
static const struct {
    const char *name, *name_of_s0;
    size_t at;
    int64_t least, most;
} whole_fields[] = {
    { "minMs", "minDurationMs", offsetof(behaviour, min_ms), 0, 600000 },
    { "maxMs", "maxDurationMs", offsetof(behaviour, max_ms), 0, 600000 },
    { "capacity", "capacity", offsetof(behaviour, capacity), 1, 100000 },
};

const char *roll_name(roll r)
{
    return roll_names[r];
}

static bool take_percent(behaviour *b, roll r, json_object *value, cb_error *e)
{
    double percent = json_object_get_double(value);

    if ((!json_object_is_type(value, json_type_double) &&
         !json_object_is_type(value, json_type_int)) ||
        !isfinite(percent) || percent < 0 || percent > 100)
        return cb_fail(e, CB_INVALID_DATA, "%s must be a number from 0 to 100", roll_names[r]);
    b->percent[r] = percent;
    return true;
}

static bool take_whole(behaviour *b, size_t i, json_object *value, cb_error *e)
{
    int64_t number = json_object_get_int64(value);

    if (!json_object_is_type(value, json_type_int) || number < whole_fields[i].least ||
        number > whole_fields[i].most)
        return cb_fail(e, CB_INVALID_DATA, "%s must be a whole number from %d to %d",
                       whole_fields[i].name, (int)whole_fields[i].least, (int)whole_fields[i].most);
    *(int64_t *)(void *)((char *)b + whole_fields[i].at) = number;
    return true;
}

static bool take(behaviour *b, const char *name, json_object *value, cb_error *e)
{
    for (int r = 0; r < ROLL_OK; r++) {
        if (strcmp(roll_names[r], name) == 0 || strcmp(roll_names_of_s0[r], name) == 0)
            return take_percent(b, (roll)r, value, e);
    }
    for (size_t i = 0; i < CB_COUNT(whole_fields); i++) {
        if (strcmp(whole_fields[i].name, name) == 0 ||
            strcmp(whole_fields[i].name_of_s0, name) == 0)
            return take_whole(b, i, value, e);
    }
    if (strcmp(name, "inOrder") != 0)
        return cb_fail(e, CB_INVALID_DATA, "a behaviour has no '%.60s'", name);
    if (!json_object_is_type(value, json_type_boolean))
        return cb_fail(e, CB_INVALID_DATA, "inOrder must be true or false");
    b->in_order = json_object_get_boolean(value);
    return true;
}

static bool check(const behaviour *b, cb_error *e)
{
    double sum = 0;

    for (int r = 0; r < ROLL_OK; r++)
        sum += b->percent[r];
    if (sum > 100.000001)
        return cb_fail(e, CB_INVALID_DATA, "the percentages add up to %g", sum);
    return b->min_ms <= b->max_ms ||
           cb_fail(e, CB_INVALID_DATA, "minMs is more than maxMs: say both");
}

bool behaviour_patch(behaviour *b, json_object *patch, cb_error *e)
{
    behaviour next = *b;

    if (!json_object_is_type(patch, json_type_object))
        return cb_fail(e, CB_INVALID_DATA, "a behaviour is a JSON object");
    json_object_object_foreach(patch, name, value)
    {
        if (!take(&next, name, value, e))
            return false;
    }
    if (!check(&next, e))
        return false;
    *b = next;
    return true;
}

json_object *behaviour_json(const behaviour *b)
{
    json_object *json = json_object_new_object();

    for (int r = 0; r < ROLL_OK; r++)
        json_object_object_add(json, roll_names[r], json_object_new_double(b->percent[r]));
    json_object_object_add(json, "minMs", json_object_new_int64(b->min_ms));
    json_object_object_add(json, "maxMs", json_object_new_int64(b->max_ms));
    if (b->capacity)
        json_object_object_add(json, "capacity", json_object_new_int64(b->capacity));
    return json;
}

roll behaviour_roll(const behaviour *b, const dice *d)
{
    double thrown = dice_percent(d, "outcome"), sum = 0;

    for (int r = 0; r < ROLL_OK; r++) {
        sum += b->percent[r];
        if (thrown < sum)
            return (roll)r;
    }
    return ROLL_OK;
}

int64_t behaviour_delay_ms(const behaviour *b, const dice *d)
{
    return dice_between(d, "delay", b->min_ms, b->max_ms);
}
