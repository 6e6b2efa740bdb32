/* The life of a call. */
#include "call.h"

#include <string.h>

enum {
    LONGEST_KEY = 200,
    MOST_RETRY_SECONDS = 2
};

/* What failures look like from outside. */
static const struct {
    unsigned status;
    const char *code, *message;
} failures[ROLLS] = {
    [ROLL_PERMANENT] = { 400, "PERM_ERROR", "simulated permanent failure" },
    [ROLL_TRANSIENT] = { 503, "TRANS_ERROR", "simulated transient failure" },
    [ROLL_BUSINESS_RULE] = { 422, "BIZ_ERROR", "simulated business rule failure" },
};

static answer act(simulator *s, const endpoint *at, const request *r, const behaviour *b,
                  const dice *d)
{
    roll rolled = behaviour_roll(b, d);
    bool is_whole = pause_for(&s->pauses, behaviour_delay_ms(b, d));

    if (rolled == ROLL_BUSINESS_RULE && at->never_declines)
        rolled = ROLL_OK;
    traffic_count(&s->traffic[at->api], rolled);
    if (!is_whole)
        return answer_refusal(503, "TRANS_ERROR", "the simulator ends");
    if (rolled == ROLL_TIMEOUT) {
        pause_until_gone(&s->pauses, r->socket, s->hold_ms);
        return (answer){ .hangs_up = true };
    }
    if (!failures[rolled].code)
        return at->act(s, r, rolled, d);
    answer a = answer_refusal(failures[rolled].status, failures[rolled].code, "%s",
                              failures[rolled].message);
    if (rolled == ROLL_TRANSIENT) /* in one of three cases it says nothing about it */
        a.retry_after = (int)dice_between(d, "retry-after", 0, MOST_RETRY_SECONDS);
    return a;
}

static answer call_with_key(simulator *s, const endpoint *at, const request *r, const behaviour *b)
{
    key_entry *entry;
    dice d = { .seed = s->seed, .key = r->key };
    answer a = { 0 };

    switch (keys_begin(&s->keys, at->scope, r->key, request_hash(r), &entry, &d.turn, &a)) {
    case KEY_NEW:
        a = act(s, at, r, b, &d);
        keys_end(&s->keys, entry, &a);
        return a;
    case KEY_REPEAT:
        traffic_count_repeat(&s->traffic[at->api]);
        return a;
    case KEY_MISUSED:
        return answer_refusal(400, "INVALID_DATA", "this Idempotency-Key came with other data");
    default:
        return answer_refusal(503, "TRANS_ERROR", "out of memory");
    }
}

/* All that can be said without doing anything. */
static bool check(simulator *s, const endpoint *at, request *r, behaviour *b, answer *refused)
{
    cb_error e = { 0 };

    if (!r->key || !*r->key || strlen(r->key) > LONGEST_KEY) {
        *refused = answer_refusal(400, "INVALID_DATA",
                                  "the header Idempotency-Key must have 1 to 200 bytes");
        return false;
    }
    if (!request_read(r, refused) || !at->check(r, refused))
        return false;
    if (r->behaviour && !places_patch_once(&s->places, b, at->place, r->behaviour, &e)) {
        *refused = answer_refusal(400, "INVALID_DATA", "%s", e.message);
        return false;
    }
    return true;
}

static int64_t capacity_of(simulator *s, api which)
{
    static const place holders[APIS] = { PLACE_FX, PLACE_RISK, PLACE_GATEWAY };

    return places_get(&s->places, holders[which]).capacity;
}

answer call(simulator *s, const endpoint *at, request *r)
{
    traffic *t = &s->traffic[at->api];
    behaviour b = places_get(&s->places, at->place);
    answer a;

    if (!traffic_enter(t, capacity_of(s, at->api))) {
        a = answer_refusal(429, "CAPACITY", "there are as many calls in flight as there may be");
        a.retry_after = 1;
        return a;
    }
    if (check(s, at, r, &b, &a))
        a = call_with_key(s, at, r, &b);
    else
        traffic_count_invalid(t);
    traffic_leave(t);
    return a;
}
