/* The network's thread: looks through the payments under way whenever one of them is due. */
#include "network.h"

#include <commandbus/handler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fail.h"
#include "pause.h"

enum {
    LOOK_MS = 200,  /* how often one that a person holds is looked at */
    AGAIN_MS = 200, /* the database is away */
    MOST_TRIES = 20 /* of one that the database refuses */
};

/* What stands behind the levels: the decision about a risk, an answer like theirs. */
enum {
    APPROVAL = LEVELS,
    ANSWERS
};

/* A payment on its way through its levels. */
typedef struct payment {
    struct payment *next;
    submission s;
    bool has_own[ANSWERS]; /* a behaviour that came with it */
    behaviour own[ANSWERS];
    int level, last; /* 0 is L1 */
    int64_t due_ms;
    bool is_held; /* its level will not be answered by us */
    int tries;
} payment;

struct network {
    network_options o;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool is_ending;
    payment *submitted; /* not seen by the thread yet */
    long sent[ROLLS], under_way, refused;
};

static const char *const level_names[ANSWERS] = { "L1", "L2", "L3", "L4", "riskApproval" };
_Static_assert(PLACE_L1 + APPROVAL == PLACE_APPROVAL, "places are in the order of answers");

/* Of failures: what the process is told. */
static const struct {
    const char *code, *message;
} errors[ROLLS] = {
    [ROLL_PERMANENT] = { "PERM_ERROR", "the network refuses the payment" },
    [ROLL_TRANSIENT] = { "TRANS_ERROR", "the network could not process the payment" },
    [ROLL_BUSINESS_RULE] = { "BIZ_ERROR", "the network declines the payment" },
    [ROLL_DECLINED] = { "BIZ_ERROR", "the network declines the payment" },
};

static dice dice_of(const network *n, const payment *p)
{
    return (dice){ n->o.seed, p->s.command_id.text, (uint64_t)p->level };
}

/* Of its level: what came with it, else what holds there now. */
static behaviour behaviour_of(const network *n, const payment *p)
{
    return p->has_own[p->level] ? p->own[p->level]
                                : places_get(n->o.places, (place)(PLACE_L1 + p->level));
}

static void plan(const network *n, payment *p)
{
    behaviour b = behaviour_of(n, p);
    dice d = dice_of(n, p);

    p->due_ms = now_ms() + behaviour_delay_ms(&b, &d);
    p->is_held = false;
    p->tries = 0;
}

static json_object *response_of(const network *n, const payment *p, roll r)
{
    json_object *payload = json_object_new_object();
    dice d = dice_of(n, p);
    char reference[32];

    if (p->level == APPROVAL) {
        bool declines = errors[r].code;
        json_object_object_add(payload, "status",
                               json_object_new_string(declines ? "DECLINED" : "APPROVED"));
        if (declines)
            json_object_object_add(payload, "reason", json_object_new_string(errors[r].code));
        return payload;
    }
    if (errors[r].code) {
        json_object_object_add(payload, "error", json_object_new_string(errors[r].code));
        json_object_object_add(payload, "message", json_object_new_string(errors[r].message));
        return payload;
    }
    snprintf(reference, sizeof reference, "%s-REF-%08X", level_names[p->level],
             (unsigned)dice_number(&d, "reference"));
    json_object_object_add(payload, "reference", json_object_new_string(reference));
    return payload;
}

static bool respond(network *n, const payment *p, roll r, cb_error *e)
{
    OWNED(json_object) payload = response_of(n, p, r);
    cb_uuid response_id = cb_uuid_from_name(&p->s.command_id, level_names[p->level]);

    return database_respond(n->o.database, p->s.process_id.text, level_names[p->level],
                            json_object_to_json_string(payload), response_id.text, e);
}

static void count(network *n, long *what)
{
    pthread_mutex_lock(&n->lock);
    ++*what;
    pthread_mutex_unlock(&n->lock);
}

/* Whether it is still under way after its level has been answered. */
static bool go_on(const network *n, payment *p)
{
    if (p->level == p->last)
        return false;
    p->level++;
    plan(n, p);
    return true;
}

/* What the database does not take now is brought again; what it never takes, only so often. */
static bool try_again(network *n, payment *p, const cb_error *e)
{
    bool is_gone = e->code == CB_PROCESS_NOT_FOUND;

    if (e->code != CB_LOST && e->code != CB_AGAIN && (is_gone || ++p->tries >= MOST_TRIES)) {
        fprintf(stderr, "commandbus-simulator: %s of process %s: %s\n", level_names[p->level],
                p->s.process_id.text, e->message);
        count(n, &n->refused);
        return false;
    }
    p->due_ms = now_ms() + AGAIN_MS;
    return true;
}

static bool hold(payment *p)
{
    p->is_held = true;
    p->due_ms = now_ms() + LOOK_MS;
    return true;
}

/* The outcome of its level, the one and only. Returns whether it is still under way. */
static bool answer_level(network *n, payment *p)
{
    behaviour b = behaviour_of(n, p);
    dice d = dice_of(n, p);
    roll r = behaviour_roll(&b, &d);
    cb_error e = { 0 };
    bool done = true;

    if (r == ROLL_PENDING)
        done = database_keep_network(n->o.database, p->s.process_id.text, p->s.command_id.text,
                                     level_names[p->level], p->s.execution_model, &e);
    else if (r != ROLL_TIMEOUT)
        done = respond(n, p, r, &e);
    if (!done)
        return try_again(n, p, &e);
    count(n, &n->sent[r]);
    if (r == ROLL_PENDING || r == ROLL_TIMEOUT)
        return hold(p);
    return !errors[r].code && go_on(n, p);
}

/* Has a person answered it? */
static bool look(network *n, payment *p)
{
    bool is_answered = false, is_over = false;
    cb_error e = { 0 };

    if (!database_look(n->o.database, p->s.process_id.text, level_names[p->level], &is_answered,
                       &is_over, &e))
        return try_again(n, p, &e);
    if (is_over)
        return false;
    return is_answered ? go_on(n, p) : hold(p);
}

/* Those that are due act; those that are through are freed. Returns when the next is due. */
static int64_t turn(network *n, payment **first)
{
    int64_t next_ms = INT64_MAX, now = now_ms();

    for (payment **at = first; *at;) {
        payment *p = *at;
        if (p->due_ms <= now && !(p->is_held ? look(n, p) : answer_level(n, p))) {
            *at = p->next;
            free(p);
            pthread_mutex_lock(&n->lock);
            n->under_way--;
            pthread_mutex_unlock(&n->lock);
            continue;
        }
        if (p->due_ms < next_ms)
            next_ms = p->due_ms;
        at = &p->next;
    }
    return next_ms;
}

/* What has been submitted since, once something was or the time has come; false: it ends. */
static bool wait_for_more(network *n, int64_t until_ms, payment **first)
{
    struct timespec until = { until_ms / 1000, until_ms % 1000 * 1000000 };

    pthread_mutex_lock(&n->lock);
    while (!n->is_ending && !n->submitted) {
        if (until_ms == INT64_MAX)
            pthread_cond_wait(&n->changed, &n->lock);
        else if (pthread_cond_timedwait(&n->changed, &n->lock, &until) != 0)
            break;
    }
    bool goes_on = !n->is_ending;
    payment **end = first;
    while (*end)
        end = &(*end)->next;
    *end = n->submitted;
    n->submitted = NULL;
    pthread_mutex_unlock(&n->lock);
    return goes_on;
}

static void *run(void *arg)
{
    network *n = arg;
    payment *first = NULL;

    while (wait_for_more(n, turn(n, &first), &first))
        ;
    for (payment *next; first; first = next) {
        next = first->next;
        free(first);
    }
    return NULL;
}

bool network_start(const network_options *options, network **ret, cb_error *e)
{
    network *n = calloc(1, sizeof *n);
    pthread_condattr_t monotonic;

    if (!n)
        return fail_memory(e);
    n->o = *options;
    pthread_mutex_init(&n->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&n->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&n->thread, NULL, run, n) != 0) {
        free(n);
        return cb_fail(e, CB_MEMORY, "no thread for the network");
    }
    *ret = n;
    return true;
}

void network_stop(network *n)
{
    if (!n)
        return;
    pthread_mutex_lock(&n->lock);
    n->is_ending = true;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->thread, NULL);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

/* NULL without memory. */
static payment *payment_new(const network *n, const submission *s, int first, int last)
{
    payment *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->s = *s;
    p->s.behaviour = NULL; /* borrowed for the call only: what it says is copied */
    for (int i = 0; i < ANSWERS; i++)
        p->has_own[i] = places_own(n->o.places, (place)(PLACE_L1 + i), s->behaviour, &p->own[i]);
    p->level = first;
    p->last = last;
    plan(n, p);
    return p;
}

static void hand_over(network *n, payment *p)
{
    pthread_mutex_lock(&n->lock);
    p->next = n->submitted;
    n->submitted = p;
    n->under_way++;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static bool submit_levels(network *n, const submission *s, int first, int last)
{
    payment *p = payment_new(n, s, first, last);

    if (p)
        hand_over(n, p);
    return p != NULL;
}

bool network_submit(network *n, const submission *s)
{
    behaviour b = places_get(n->o.places, PLACE_NETWORK);

    if (b.in_order)
        return submit_levels(n, s, 0, LEVELS - 1);
    /* Each on its own: whichever has the shorter delay comes first. */
    for (int level = 0; level < LEVELS; level++) {
        if (!submit_levels(n, s, level, level))
            return false;
    }
    return true;
}

roll network_decide(network *n, const submission *s)
{
    payment *p = payment_new(n, s, APPROVAL, APPROVAL);

    if (!p)
        return ROLLS;
    behaviour b = behaviour_of(n, p);
    dice d = dice_of(n, p);
    roll r = behaviour_roll(&b, &d);
    if (r == ROLL_PENDING || r == ROLL_TIMEOUT) {
        count(n, &n->sent[r]);
        free(p);
        return r;
    }
    /* Whatever holds there later: what was said is what comes. */
    p->own[APPROVAL] = b;
    p->has_own[APPROVAL] = true;
    hand_over(n, p);
    return r;
}

json_object *network_json(network *n)
{
    json_object *json = json_object_new_object(), *sent = json_object_new_object();

    pthread_mutex_lock(&n->lock);
    for (int r = 0; r < ROLLS; r++)
        json_object_object_add(sent, roll_name((roll)r), json_object_new_int64(n->sent[r]));
    json_object_object_add(json, "under_way", json_object_new_int64(n->under_way));
    json_object_object_add(json, "refused", json_object_new_int64(n->refused));
    pthread_mutex_unlock(&n->lock);
    json_object_object_add(json, "outcomes", sent);
    return json;
}

void network_reset(network *n)
{
    pthread_mutex_lock(&n->lock);
    memset(n->sent, 0, sizeof n->sent);
    n->refused = 0;
    pthread_mutex_unlock(&n->lock);
}
