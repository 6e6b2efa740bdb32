/* Process jobs. */
#include "process_job.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "process_domain.h"

static size_t type_of(const process_domain *d, const char *process_type)
{
    size_t i = 0;

    while (i + 1 < d->n_kinds && strcmp(d->kinds[i].process_type, process_type) != 0)
        i++;
    return i;
}

process_job *process_job_make(process_domain *d, process_share *share, const cb_process_row *row,
                              int64_t lease_end)
{
    process_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    j->domain = d;
    j->share = share;
    j->row = row;
    j->type = type_of(d, row->process_type);
    j->outcome.job = j;
    sem_init(&j->answer, 0, 0);
    atomic_init(&j->lease_end, lease_end);
    atomic_init(&j->users, 1);
    atomic_fetch_add(&share->users, 1);
    return j;
}

static bool keep(char **to, const char **from)
{
    *to = *from ? strdup(*from) : NULL;
    bool kept = *to || !*from;
    *from = *to;
    return kept;
}

/* Where its commands went, as an index; n_domains: to several. */
static size_t domain_index(const cb_worker *w, const cb_run_result *result)
{
    size_t i = 0;

    if (!result->sent_to)
        return w->n_domains;
    while (i < w->n_domains && strcmp(w->domains[i].name, result->sent_to) != 0)
        i++;
    return i < w->n_domains ? i : SIZE_MAX;
}

bool process_job_return(process_job *j, const cb_run_result *result, int64_t took)
{
    j->returned = true;
    j->took = took;
    j->result = *result;
    j->outcome.settlement = result->settlement;
    j->outcome.settlement.verdict = CB_SETTLED;
    j->sent_to = domain_index(j->domain->worker, result);
    j->result.sent_to = NULL; /* ends with the run */
    return keep(&j->item, &j->outcome.settlement.item) &&
           keep(&j->error_code, &j->result.error_code) &&
           keep(&j->error_message, &j->result.error_message) && keep(&j->misuse, &j->result.misuse);
}

void process_share_drop(process_share *share)
{
    if (atomic_fetch_sub(&share->users, 1) > 1)
        return;
    atomic_fetch_sub(&share->memory->claimed, cb_process_claim_bytes(share->claim));
    cb_process_claim_free(share->claim);
    free(share);
}

void process_job_drop(process_job *j)
{
    if (atomic_fetch_sub(&j->users, 1) > 1)
        return;
    process_share_drop(j->share);
    sem_destroy(&j->answer);
    free(j->item);
    free(j->error_code);
    free(j->error_message);
    free(j->misuse);
    free(j);
}
