/* A worker that dies just before something would have become durable: what it did since is done,
 * and nobody knows. The stage's own crash_after dies just after it. */
#ifndef TEST_SUPPORT_DYING_H
#define TEST_SUPPORT_DYING_H

#include "stage.h"

typedef struct {
    stage *stage;
    int settles; /* tried so far */
    int die_at;  /* at this one; 0: never */
    bool dead;
} dying;

static inline bool dying_settle(dying *d, cb_process_settlement *settlement)
{
    cb_error e;

    d->settles++;
    if (d->dead || d->settles == d->die_at) {
        d->dead = true;
        return false;
    }
    cr_assert(cb_process_settle(bus.db, d->stage->kit.worker, settlement, 1, &e), "%s", e.message);
    expect_verdict(CB_SETTLED, settlement->verdict);
    return true;
}

static inline bool dying_checkpoint(void *arg, cb_process_settlement *settlement)
{
    return dying_settle(arg, settlement);
}

/* One process. False when none was due, or it died: then its lease has run out, and another worker
 * may come. */
static inline bool dying_step(dying *d)
{
    static const cb_run_host host = { .checkpoint = dying_checkpoint };
    cb_process_claim_options options = { .worker = d->stage->kit.worker,
                                         .kinds = cb_process_types_kinds(d->stage->kit.types),
                                         .n_kinds = cb_process_types_count(d->stage->kit.types),
                                         .vt_seconds = 1 };
    OWNED(cb_process_claim) claim = NULL;
    cb_process_look look;
    cb_error e;

    d->dead = false;
    cr_assert(cb_process_claim_due(bus.db, &options, 1, &claim, &look, &e), "%s", e.message);
    if (cb_process_claim_count(claim) == 0)
        return false;
    cb_run_process(d->stage->kit.run, cb_process_claim_at(claim, 0), &host, d, &d->stage->kit.last);
    if (!d->dead && dying_settle(d, &d->stage->kit.last.settlement))
        return true;
    stage_restart(d->stage);
    return false;
}

#endif
