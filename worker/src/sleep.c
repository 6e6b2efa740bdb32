/* Sleeping on an empty domain.
 *
 * A notification in every commit would hold the whole server at some 3,000 commits a second, so senders
 * notify only while a sleeper is announced. Busy: no sleeper, polls after 1, 2, 4 … ms. Quiet for some
 * milliseconds: announce, look once more (what was sent before the announcement notified nobody), then
 * wait for the listener. A sender who looked for sleepers before the announcement and commits after that
 * look notifies nobody either, so further looks follow, each after as long as the sleep has lasted, up to
 * the poll interval, which is also there in case the listener went deaf. */
#include "sleep.h"

#include "clock.h"

static const double first_poll = 0.001;
/* Polls at 1 and 2 ms found nothing: the domain is quiet. */
static const double quiet_after = 0.004;
/* So many claims with work, each within so long of the last: notifications cost more than polls. */
enum {
    BUSY_HITS = 4
};
static const int64_t busy_gap_ns = 3000000;

static void poll_in(claim_place *p, double seconds)
{
    p->poll_wait = seconds < p->domain->poll_seconds ? seconds : p->domain->poll_seconds;
    p->poll_at = now_ns() + seconds_to_ns(p->poll_wait);
}

/* True when a sleeper is there for another poll interval: somebody will wake us. */
static bool is_announced(cb_worker *w, const claim_place *p)
{
    return atomic_load(&w->hears) &&
           p->announced > now_ns() + seconds_to_ns(p->domain->poll_seconds);
}

/* Announced: when to look again though nobody said anything. */
static void poll_asleep(claim_place *p)
{
    double asleep = ns_to_ms(now_ns() - p->asleep_since) / 1000;

    poll_in(p, asleep > first_poll ? asleep : first_poll);
}

static void announce(cb_worker *w, claim_place *p)
{
    db_link *link = &w->links[LINK_CLAIM];
    const char *queue = p->domain->queue;
    double seconds = 2 * p->domain->poll_seconds + 1;
    int64_t from = now_ns();
    cb_error e = { 0 };

    if (!cb_sleep_announce(link->db, w->id, &queue, 1, seconds, &e)) {
        link_failed(link, &e, "sleep");
        return;
    }
    if (p->announced < from) /* else the one before is still there */
        p->asleep_since = from;
    p->announced = from + seconds_to_ns(seconds);
    p->poll_at = from; /* once more, now that senders know */
}

static void wake_up(cb_worker *w, claim_place *p)
{
    db_link *link = &w->links[LINK_CLAIM];
    const char *queue = p->domain->queue;
    cb_error e = { 0 };

    if (p->announced < now_ns())
        return;
    p->announced = 0;
    if (!cb_sleep_end(link->db, w->id, &queue, 1, &e))
        link_failed(link, &e, "wake");
}

static void found_some(cb_worker *w, claim_place *p)
{
    int64_t now = now_ns();

    p->hits = now - p->last_hit < busy_gap_ns ? p->hits + 1 : 1;
    p->last_hit = now;
    if (p->hot || p->hits >= BUSY_HITS)
        wake_up(w, p);
    if (is_announced(w, p))
        poll_asleep(p);
    else
        poll_in(p, first_poll);
}

static void found_none(cb_worker *w, claim_place *p)
{
    p->hits = 0;
    if (is_announced(w, p)) {
        poll_asleep(p);
        return;
    }
    poll_in(p, p->poll_wait > 0 ? 2 * p->poll_wait : first_poll);
    if (p->poll_wait >= quiet_after && p->domain->notify && atomic_load(&w->hears))
        announce(w, p);
}

void sleep_after_claim(cb_worker *w, claim_place *p, size_t seen, size_t asked)
{
    p->hot = seen >= asked;
    if (seen > 0)
        found_some(w, p);
    else
        found_none(w, p);
}

void sleep_after_failure(claim_place *p)
{
    p->hot = false;
    poll_in(p, p->domain->poll_seconds > 1 ? 1 : p->domain->poll_seconds);
}
