/* Claiming commands. */
#include "claim.h"

#include <stdlib.h>

#include "clock.h"
#include "engine.h"

/* With the settler busy with one half of the places, the other half can be claimed. */
static size_t most_at_once(const lane *l)
{
    return l->n_places >= 8 ? (size_t)(l->n_places + 1) / 2 : (size_t)l->n_places;
}

/* What claims of commands may hold of an instance's memory over all its domains, and one command more of each: with the
 * memory of processes (process_memory.h) it fits the smallest limit that deploy/ has, 256 MiB. */
static const size_t most_bytes = 32 * 1024 * 1024;
/* Of that one claim: its memory comes back with the last of its commands, however slow that one is. */
static const size_t most_bytes_at_once = 8 * 1024 * 1024;

static size_t room(cb_worker *w)
{
    size_t claimed = atomic_load(&w->command_bytes);

    return claimed < most_bytes ? most_bytes - claimed : 0;
}

/* A domain that has nothing in flight may claim whatever the others hold: one command, as room is over. */
static size_t free_places(cb_worker *w, const claim_place *p)
{
    const lane *l = &w->domains[p->domain].commands.lane;
    size_t n = lane_free_places(l);

    return room(w) > 0 || n == (size_t)l->n_places ? n : 0;
}

/* Makes jobs of what was claimed. What finds no memory stays leased, and comes again afterwards. */
static void take_over(cb_worker *w, command_lane *l, cb_claim *claim, int64_t lease_end)
{
    size_t n = cb_claim_count(claim), made = 0;
    claim_share *share = calloc(1, sizeof *share);
    job **jobs = calloc(n + 1, sizeof *jobs);

    if (share) {
        share->ops = &command_ops;
        share->claim = claim;
        share->bytes = cb_claim_bytes(claim);
        share->counted = &w->command_bytes;
        atomic_fetch_add(share->counted, share->bytes);
        atomic_init(&share->users, 1);
    }
    for (size_t i = 0; share && jobs && i < n; i++) {
        const cb_command *command = cb_claim_at(claim, i);
        job *j = command_job_make(l, share, command, lease_end);
        if (!j)
            break;
        metrics_wait(w->metrics, l->lane.index, command->waited_us);
        jobs[made++] = j;
    }
    if (made < n)
        emit(w, CB_LEVEL_ERROR, "claim.dropped", .domain = l->lane.name,
             .count = (int64_t)(n - made), .error = "no memory");
    if (made > 0)
        lane_add(&l->lane, jobs, made);
    free(jobs);
    if (share)
        share_drop(share);
    else
        cb_claim_free(claim);
}

static void tell_of_claim(cb_worker *w, const lane *l, const cb_claim *claim)
{
    size_t claimed = cb_claim_count(claim), poisoned = cb_claim_poisoned(claim),
           exhausted = cb_claim_exhausted(claim);

    metrics_claim(w->metrics, l->index, claimed, poisoned, exhausted);
    if (claimed > 0)
        emit(w, CB_LEVEL_DEBUG, "commands.claimed", .domain = l->name, .count = (int64_t)claimed);
    if (poisoned > 0)
        emit(w, CB_LEVEL_WARN, "message.poisoned", .domain = l->name, .count = (int64_t)poisoned,
             .hint = "archived: see audit events POISON_ARCHIVED");
    if (exhausted > 0)
        emit(w, CB_LEVEL_WARN, "lease.exhausted", .domain = l->name, .count = (int64_t)exhausted,
             .hint =
                 "commands whose runs all ended without an outcome are in the TSQ: commandbus tsq "
                 "list");
}

static void claim(cb_worker *w, claim_place *p)
{
    command_lane *l = &w->domains[p->domain].commands;
    db_link *link = &w->links[LINK_CLAIM];
    OWNED(cb_claim) taken = NULL;
    cb_error e = { 0 };
    size_t quantity = free_places(w, p), left = room(w),
           bytes = left < most_bytes_at_once ? left : most_bytes_at_once;

    if (quantity == 0) { /* as soon as there is room */
        p->sleep.hot = true;
        return;
    }
    cb_receiver_claim_bytes(l->receiver,
                            bytes > 0 ? (int64_t)bytes : 1); /* and one more than that */
    if (quantity > most_at_once(&l->lane))
        quantity = most_at_once(&l->lane);
    if (bytes == 0)
        quantity = 1;
    int64_t asked_at = now_ns();
    if (!cb_receive(link->db, l->receiver, (int)quantity, &taken, &e)) {
        sleep_after_failure(&p->sleep);
        claimer_failed(&w->claims, p, &e, "claim");
        return;
    }
    link_worked(link);
    trouble_end(&p->refused);
    size_t got = cb_claim_count(taken);
    bool more = cb_claim_more(taken);
    size_t seen = got + cb_claim_poisoned(taken) + cb_claim_exhausted(taken);
    tell_of_claim(w, &l->lane, taken);
    if (got > 0)
        take_over(w, l, cb_claim_take(&taken), lease_end_from(asked_at, l->lane.vt_seconds));
    sleep_after_claim(&p->sleep, seen, seen >= quantity || more);
}

static void release_unknown(cb_worker *w, claim_place *p)
{
    lane *l = &w->domains[p->domain].commands.lane;
    job **jobs;
    size_t n, released = 0;
    cb_error e = { 0 };

    if (!lane_snapshot(l, &jobs, &n))
        return;
    cb_lease *held = calloc(n + 1, sizeof *held);
    for (size_t i = 0; held && i < n; i++) {
        const cb_command *command = ((command_job *)jobs[i])->command;
        held[i] = (cb_lease){ .domain = l->name,
                              .command_id = command->command_id,
                              .lease_no = command->lease_no };
    }
    if (held &&
        !cb_lease_release_unknown(w->links[LINK_CLAIM].db, l->name, w->id, held, n, &released, &e))
        claimer_failed(&w->claims, p, &e, "release");
    if (released > 0) {
        metrics_released(w->metrics, l->index, released);
        emit(w, CB_LEVEL_WARN, "lease.released", .domain = l->name, .count = (int64_t)released,
             .hint = "claimed, but the answer never arrived: given back uncharged");
    }
    free(held);
    snapshot_done(jobs, n);
}

static const claim_kind commands = { free_places, claim, release_unknown };

bool claims_init(cb_worker *w, cb_error *e)
{
    if (!claimer_init(&w->claims, w, &commands, LINK_CLAIM, w->n_domains, e))
        return false;
    for (size_t i = 0; i < w->n_domains; i++) {
        command_lane *l = &w->domains[i].commands;
        w->claims.places[i].sleep = (sleeper){ .link = &w->links[LINK_CLAIM],
                                               .queues = (const char *const *)&l->queue,
                                               .n_queues = 1,
                                               .poll_seconds = l->lane.poll_seconds,
                                               .notify = l->lane.notify };
        sleep_init(&w->claims.places[i].sleep, w, l->lane.name);
    }
    return true;
}
