/* The table of behaviours, changed while calls read it. */
#include "places.h"

#include <commandbus/handler.h>
#include <json-c/json_tokener.h>
#include <json-c/linkhash.h>
#include <string.h>

/* A place without a capacity is within that of its API. */
static const struct {
    const char *name;
    bool has_capacity, can_pend;
} about[PLACES] = {
    [PLACE_FX] = { "fx", true, false },
    [PLACE_FX_RELEASE] = { "fx-release", false, false },
    [PLACE_RISK] = { "risk", true, true },
    [PLACE_RISK_RELEASE] = { "risk-release", false, false },
    [PLACE_GATEWAY] = { "gateway", true, false },
    [PLACE_NETWORK] = { "network", false, true },
    [PLACE_L1] = { "network-L1", false, true },
    [PLACE_L2] = { "network-L2", false, true },
    [PLACE_L3] = { "network-L3", false, true },
    [PLACE_L4] = { "network-L4", false, true },
    [PLACE_APPROVAL] = { "risk-approval", false, true },
};

/* The steps of a payment, by which S0 names the places that they meet. */
static const struct {
    const char *step;
    place at;
} steps[] = {
    { "bookRisk", PLACE_RISK }, { "awaitRiskApproval", PLACE_APPROVAL },
    { "bookFx", PLACE_FX },     { "submitPayment", PLACE_GATEWAY },
    { "awaitL1", PLACE_L1 },    { "awaitL2", PLACE_L2 },
    { "awaitL3", PLACE_L3 },    { "awaitL4", PLACE_L4 },
};

void places_init(places *p, bool has_pending)
{
    *p = (places){ .has_pending = has_pending };
    pthread_mutex_init(&p->lock, NULL);
    for (int i = 0; i < PLACES; i++)
        p->of[i].in_order = true;
    p->of[PLACE_APPROVAL].percent[ROLL_PENDING] = 100;
}

void places_done(places *p)
{
    pthread_mutex_destroy(&p->lock);
}

void places_chaos(places *p)
{
    for (int i = 0; i < PLACE_APPROVAL; i++) /* decisions stay with persons */
        memcpy(p->of[i].percent, behaviour_chaos.percent, sizeof p->of[i].percent);
}

behaviour places_get(places *p, place at)
{
    pthread_mutex_lock(&p->lock);
    behaviour b = p->of[at];
    pthread_mutex_unlock(&p->lock);
    return b;
}

place place_named(const char *name)
{
    int i = 0;

    while (i < PLACES && strcmp(about[i].name, name) != 0)
        i++;
    return (place)i;
}

static bool patch_one(const places *p, behaviour *b, place at, json_object *patch, cb_error *e)
{
    behaviour next = *b;

    if (json_object_is_type(patch, json_type_object) && !about[at].has_capacity &&
        json_object_object_get_ex(patch, "capacity", NULL))
        return cb_fail(e, CB_INVALID_DATA, "%s has no capacity of its own", about[at].name);
    if (!behaviour_patch(&next, patch, e))
        return false;
    if (!p->has_pending && about[at].can_pend && next.percent[ROLL_PENDING] > 0)
        return cb_fail(e, CB_INVALID_DATA,
                       "pending outcomes of %s need a database: start the simulator with "
                       "COMMANDBUS_DATABASE_URL",
                       about[at].name);
    *b = next;
    return true;
}

bool places_patch(places *p, place at, json_object *patch, cb_error *e)
{
    pthread_mutex_lock(&p->lock);
    bool taken = patch_one(p, &p->of[at], at, patch, e);
    for (int level = PLACE_L1; taken && at == PLACE_NETWORK && level <= PLACE_L4; level++)
        p->of[level] = p->of[at];
    pthread_mutex_unlock(&p->lock);
    return taken;
}

static place place_of_step(const char *step)
{
    size_t i = 0;

    while (i < CB_COUNT(steps) && strcmp(steps[i].step, step) != 0)
        i++;
    return i < CB_COUNT(steps) ? steps[i].at : PLACES;
}

static bool is_by_steps(json_object *said)
{
    json_object_object_foreach(said, name, value)
    {
        (void)value;
        return place_of_step(name) != PLACES;
    }
    return false;
}

/* The part for this place, if there is one; all of them are checked. */
static bool patch_by_steps(const places *p, behaviour *b, place at, json_object *said, bool *found,
                           cb_error *e)
{
    json_object_object_foreach(said, step, part)
    {
        place there = place_of_step(step);
        behaviour whole = { .in_order = b->in_order };
        if (there == PLACES)
            return cb_fail(e, CB_INVALID_DATA, "a payment has no step '%.60s'", step);
        if (!patch_one(p, &whole, there, part, e))
            return cb_fail_while(e, "reading the behaviour of %s", step);
        if (there != at)
            continue;
        whole.capacity = b->capacity;
        *b = whole;
        *found = true;
    }
    return true;
}

bool places_patch_once(const places *p, behaviour *b, place at, const char *said, cb_error *e)
{
    OWNED(json_object) json = json_tokener_parse(said);
    bool found = false;

    if (!json)
        return cb_fail(e, CB_INVALID_DATA, "Simulator-Behaviour is no JSON");
    return json_object_is_type(json, json_type_object) && is_by_steps(json)
               ? patch_by_steps(p, b, at, json, &found, e)
               : patch_one(p, b, at, json, e);
}

bool places_own(places *p, place at, const char *said, behaviour *b)
{
    OWNED(json_object) json = said ? json_tokener_parse(said) : NULL;
    bool found = false;
    cb_error e;

    *b = places_get(p, at);
    return json_object_is_type(json, json_type_object) && is_by_steps(json) &&
           patch_by_steps(p, b, at, json, &found, &e) && found;
}

json_object *places_json(places *p)
{
    json_object *json = json_object_new_object();

    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < PLACES; i++)
        json_object_object_add(json, about[i].name, behaviour_json(&p->of[i]));
    pthread_mutex_unlock(&p->lock);
    return json;
}
