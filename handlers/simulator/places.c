/* The table of behaviours, changed while calls read it. */
#include "places.h"

#include <commandbus/handler.h>
#include <json-c/json_tokener.h>
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
};

void places_init(places *p, bool has_pending)
{
    *p = (places){ .has_pending = has_pending };
    pthread_mutex_init(&p->lock, NULL);
    for (int i = 0; i < PLACES; i++)
        p->of[i].in_order = true;
}

void places_done(places *p)
{
    pthread_mutex_destroy(&p->lock);
}

void places_chaos(places *p)
{
    for (int i = 0; i < PLACES; i++)
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

bool places_patch_once(const places *p, behaviour *b, place at, const char *patch, cb_error *e)
{
    OWNED(json_object) json = json_tokener_parse(patch);

    return json ? patch_one(p, b, at, json, e)
                : cb_fail(e, CB_INVALID_DATA, "Simulator-Behaviour is no JSON");
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
