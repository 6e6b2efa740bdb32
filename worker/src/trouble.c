/* Troubles of a worker. See trouble.h. */
#include "trouble.h"

#include <stdio.h>

#include "clock.h"
#include "engine.h"

static const double first_wait = 1, longest_wait = 30, tell_every = 60;

void trouble_init(trouble *t, cb_worker *w, connection_name connection, const char *domain,
                  bool is_vital)
{
    bool is_known = false;

    for (trouble *known = w->troubles; known; known = known->next)
        is_known |= known == t;
    *t = (trouble){ .worker = w,
                    .next = is_known ? t->next : w->troubles,
                    .connection = connection,
                    .domain = domain,
                    .is_vital = is_vital };
    if (!is_known)
        w->troubles = t;
}

bool is_refusal(const cb_db *db, const cb_error *e)
{
    return e->code != CB_LOST && e->code != CB_AGAIN && !cb_db_is_lost(db);
}

/* With the lock held. */
static void count_one(trouble *t, int64_t now)
{
    bool first = !atomic_load(&t->there);

    t->count = first ? 1 : t->count + 1;
    t->untold = first ? 1 : t->untold + 1;
    t->wait_seconds = first ? first_wait : 2 * t->wait_seconds;
    if (t->wait_seconds > longest_wait)
        t->wait_seconds = longest_wait;
    t->wait_until = now + seconds_to_ns(t->wait_seconds);
    if (first)
        t->told_at = 0;
}

/* Whoever probes reads the reason, without a token: messages about data stay in the log. */
static bool is_for_everybody(cb_code code)
{
    return code == CB_DENIED || code == CB_SCHEMA || code == CB_INVALID_OPERATION ||
           code == CB_UNKNOWN_DOMAIN;
}

static void keep_reason(trouble *t, const cb_error *e, const char *doing)
{
    bool shown = is_for_everybody(e->code) || !*e->sqlstate;

    snprintf(t->reason, sizeof t->reason, "cannot %s%s%s%s%.150s%s%s", doing,
             t->domain ? " in domain " : "", t->domain ? t->domain : "", shown ? ": " : "",
             shown ? e->message : "", *e->sqlstate ? ", SQLSTATE " : "", e->sqlstate);
}

void trouble_add(trouble *t, const cb_error *e, const char *doing, const char *event)
{
    cb_worker *w = t->worker;
    int64_t now = now_ns(), refusals = 0;

    pthread_mutex_lock(&w->troubled);
    count_one(t, now);
    keep_reason(t, e, doing);
    if (t->told_at == 0 || now - t->told_at >= seconds_to_ns(tell_every)) {
        refusals = t->untold;
        t->untold = 0;
        t->told_at = now;
    }
    double wait = t->wait_seconds;
    atomic_store(&t->there, true);
    pthread_mutex_unlock(&w->troubled);
    if (refusals > 0 && event)
        emit(w, CB_LEVEL_WARN, event, .domain = t->domain,
             .connection = connection_names[t->connection], .outcome = doing, .error = e->message,
             .hint = e->hint, .error_code = e->sqlstate, .count = refusals, .retry_seconds = wait);
}

void trouble_end(trouble *t)
{
    cb_worker *w = t->worker;

    if (!atomic_load(&t->there))
        return;
    pthread_mutex_lock(&w->troubled);
    int64_t count = t->count;
    atomic_store(&t->there, false);
    pthread_mutex_unlock(&w->troubled);
    emit(w, CB_LEVEL_INFO, "database.accepts", .domain = t->domain,
         .connection = connection_names[t->connection], .count = count);
}

int64_t trouble_until(trouble *t)
{
    cb_worker *w = t->worker;

    if (!atomic_load(&t->there))
        return 0;
    pthread_mutex_lock(&w->troubled);
    int64_t until = t->wait_until;
    pthread_mutex_unlock(&w->troubled);
    return until > now_ns() ? until : 0;
}

bool troubles_find(const cb_worker *w, char *reason, size_t size)
{
    pthread_mutex_t *troubled = (pthread_mutex_t *)&w->troubled;

    for (const trouble *t = w->troubles; t; t = t->next) {
        if (!t->is_vital || !atomic_load(&t->there))
            continue;
        pthread_mutex_lock(troubled);
        snprintf(reason, size, "%s", t->reason);
        pthread_mutex_unlock(troubled);
        return true;
    }
    return false;
}

void troubles_reset(cb_worker *w)
{
    for (trouble *t = w->troubles; t; t = t->next)
        atomic_store(&t->there, false);
}
