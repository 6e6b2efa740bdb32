/* Jobs. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "served.h"

/* A day: what the database grants at most, and what a sender may ask for as a timeout. */
static const double longest_lease = 86400;

job *job_make(struct served *domain, claim_share *share, const cb_command *command,
              int64_t lease_end)
{
    job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    j->domain = domain;
    j->share = share;
    j->command = command;
    j->type = registry_find(&domain->handlers, command->command_type);
    /* A command with a longer timeout than the domain's lease gets a lease of its own length. */
    j->lease_seconds = domain->vt_seconds;
    if (command->timeout_seconds > domain->vt_seconds)
        j->lease_seconds = command->timeout_seconds + 2 * lease_margin(command->timeout_seconds);
    if (j->lease_seconds > longest_lease)
        j->lease_seconds = longest_lease;
    atomic_init(&j->lease_end, lease_end);
    atomic_init(&j->deadline, 0);
    atomic_init(&j->users, 1);
    outcome_init(&j->own, j);
    outcome_init(&j->timeout, j);
    atomic_fetch_add(&share->users, 1);
    return j;
}

void share_drop(claim_share *share)
{
    if (atomic_fetch_sub(&share->users, 1) > 1)
        return;
    atomic_fetch_sub(share->counted, cb_claim_bytes(share->claim));
    cb_claim_free(share->claim);
    free(share);
}

void job_drop(job *j)
{
    if (atomic_fetch_sub(&j->users, 1) > 1)
        return;
    cb_context_free(j->context);
    share_drop(j->share);
    free(j);
}

void outcome_init(outcome *o, job *j)
{
    o->job = j;
    o->settlement.domain = j->command->domain;
    o->settlement.command_id = j->command->command_id;
    o->settlement.lease_no = j->command->lease_no;
}

size_t outcome_bytes(const queued *o)
{
    const cb_settlement *s = &((const outcome *)o)->settlement;

    return (s->result ? strlen(s->result) : 0) + (s->error_message ? strlen(s->error_message) : 0);
}

double lease_margin(double vt_seconds)
{
    return vt_seconds > 10 ? 1 : vt_seconds / 10;
}

int64_t lease_end_from(int64_t asked_at, double vt_seconds)
{
    return asked_at + seconds_to_ns(vt_seconds - lease_margin(vt_seconds));
}

int64_t job_lease_left(const job *j)
{
    int64_t left = atomic_load(&j->lease_end) - now_ns();

    return left > 0 ? left : 0;
}
