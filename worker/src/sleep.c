/* Sleeping on an empty lane.
 *
 * A notification in every commit would hold the whole server at some 3,000 commits a second, so
 * senders notify only while a sleeper is announced. Busy: no sleeper, polls after 1, 2, 4 … ms.
 * Quiet for some milliseconds: announce, look once more (what was sent before the announcement
 * notified nobody), then wait for the listener. A sender who looked for sleepers before the
 * announcement and commits after that look notifies nobody either, so further looks follow, each
 * after as long as the sleep has lasted, up to the poll interval, which is also there in case the
 * listener went deaf.
 *
 * Senders wake one sleeper, the one that announced itself last. So whoever cannot take what it is
 * woken for must not be announced, and hands on what it may have been woken for already. */
#include "sleep.h"

#include "clock.h"
#include "engine.h"

static const double first_poll = 0.001;
/* Polls at 1 and 2 ms found nothing: it is quiet. */
static const double quiet_after = 0.004;
/* So many claims with work, each within so long of the last: notifications cost more than polls. */
enum {
    BUSY_HITS = 4
};
static const int64_t busy_gap_ns = 3000000;

static void poll_in(sleeper *s, double seconds)
{
    s->poll_wait = seconds < s->poll_seconds ? seconds : s->poll_seconds;
    s->poll_at = now_ns() + seconds_to_ns(s->poll_wait);
}

/* True when a sleeper is there for another poll interval: somebody will wake us. */
static bool is_announced(const sleeper *s)
{
    return atomic_load(&s->conn->worker->hears) &&
           s->announced > now_ns() + seconds_to_ns(s->poll_seconds);
}

/* Announced: when to look again though nobody said anything. */
static void poll_asleep(sleeper *s)
{
    double asleep = ns_to_ms(now_ns() - s->asleep_since) / 1000;

    poll_in(s, asleep > first_poll ? asleep : first_poll);
}

/* Who may not announce polls. */
static void failed(sleeper *s, const cb_error *e, const char *doing)
{
    if (is_refusal(s->conn->db, e))
        trouble_add(&s->refused, e, doing, "database.refused");
    else
        connection_failed(s->conn, e, doing);
}

static void announce(sleeper *s)
{
    db_connection *conn = s->conn;
    double seconds = 2 * s->poll_seconds + 1;
    int64_t from = now_ns();
    cb_error e = { 0 };

    if (trouble_until(&s->refused) > 0)
        return;
    if (!cb_sleep_announce(conn->db, conn->worker->id, s->queues, s->n_queues, seconds, &e)) {
        failed(s, &e, "sleep");
        return;
    }
    trouble_end(&s->refused);
    if (s->announced < from) { /* else the one before is still there */
        s->asleep_since = from;
        s->poll_at = from; /* once more, now that senders know */
    }
    s->announced = from + seconds_to_ns(seconds);
}

static void wake_up(sleeper *s)
{
    db_connection *conn = s->conn;
    cb_error e = { 0 };

    if (s->announced < now_ns())
        return;
    s->announced = 0;
    if (!cb_sleep_end(conn->db, conn->worker->id, s->queues, s->n_queues, &e))
        failed(s, &e, "wake");
}

void sleep_pass_on(sleeper *s)
{
    db_connection *conn = s->conn;
    cb_error e = { 0 };

    s->announced = 0;
    if (!cb_sleep_pass_on(conn->db, conn->worker->id, s->queues, s->n_queues, &e))
        failed(s, &e, "wake");
}

void sleep_leave(sleeper *s)
{
    if (s->announced >= now_ns())
        sleep_pass_on(s);
}

static void found_some(sleeper *s)
{
    int64_t now = now_ns();

    s->hits = now - s->last_hit < busy_gap_ns ? s->hits + 1 : 1;
    s->last_hit = now;
    if (!s->hot && s->hits >= BUSY_HITS)
        wake_up(s);
    if (is_announced(s))
        poll_asleep(s);
    else
        poll_in(s, first_poll);
}

static void found_none(sleeper *s)
{
    s->hits = 0;
    if (is_announced(s)) {
        poll_asleep(s);
        return;
    }
    poll_in(s, s->poll_wait > 0 ? 2 * s->poll_wait : first_poll);
    if (s->poll_wait >= quiet_after && s->notify && !s->hot && atomic_load(&s->conn->worker->hears))
        announce(s);
}

void sleep_init(sleeper *s, db_connection *conn, const char *domain)
{
    s->conn = conn;
    trouble_init(&s->refused, conn->worker, conn->name, domain, false);
}

void sleep_reset(sleeper *s)
{
    s->hot = false;
    s->poll_at = s->announced = 0;
    s->poll_wait = 0;
}

void sleep_after_claim(sleeper *s, size_t seen, bool hot, bool called)
{
    s->hot = hot;
    if (hot && called)
        sleep_pass_on(s);
    else if (hot || !atomic_load(&s->conn->worker->hears))
        sleep_leave(s);
    if (seen > 0)
        found_some(s);
    else
        found_none(s);
}

void sleep_prefer(sleeper *s)
{
    if (is_announced(s))
        announce(s);
}

void sleep_after_failure(sleeper *s)
{
    s->hot = false;
    poll_in(s, s->poll_seconds > 1 ? 1 : s->poll_seconds);
}

void sleep_at_most(sleeper *s, double seconds)
{
    int64_t at = now_ns() + seconds_to_ns(seconds > first_poll ? seconds : first_poll);

    if (at < s->poll_at)
        s->poll_at = at;
}
