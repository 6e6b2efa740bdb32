/* What plan says in words, whoever reads it. */
#include "plan_answer.h"

#include "frequency.h"
#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *const plan_assumptions[] = {
    "Arrivals are independent of each other (Poisson). Batches and bursts wait longer than shown.",
    "Times of calls vary much (exponential). Most APIs vary less: then waits are shorter, down to half.",
    "Retries are arrivals too: add them to --rate (--from-database has counted them).",
    "A limit on calls in flight bounds calls a second only as long as calls do not get faster.",
    NULL,
};

static void say_overloaded(const plan_answer *a, const plan_option *best, char buffer[PLAN_TEXT])
{
    char rate[32], possible[32], grows[32];

    text_append(buffer, PLAN_TEXT, "no option carries %s: the limit of %d makes %s at most, ",
                frequency_format(a->request.rate, rate, sizeof rate), a->request.limit,
                frequency_format(best->possible, possible, sizeof possible));
    if (best->headroom < 0)
        text_append(buffer, PLAN_TEXT, "so the queue grows by %s without end.",
                    frequency_format(-best->headroom, grows, sizeof grows));
    else
        text_append(buffer, PLAN_TEXT,
                    "with nothing to spare, so the queue never gets empty again.");
}

static void say_replicas(const plan_answer *a, const plan_option *best, char buffer[PLAN_TEXT])
{
    const plan *p = &a->plan;

    if (best->replicas >= a->request.min_replicas)
        text_append(buffer, PLAN_TEXT, "%d replicas", best->replicas);
    else if (best->replicas >= p->worthwhile_replicas)
        text_append(buffer, PLAN_TEXT,
                    "as many replicas as the limit has calls (--min-replicas %d would need more)",
                    a->request.min_replicas);
    else
        text_append(buffer, PLAN_TEXT,
                    "fewer replicas than --min-replicas %d, which do not carry the rate",
                    a->request.min_replicas);
}

static void say_use(const plan_answer *a, const plan_option *best, char buffer[PLAN_TEXT])
{
    if (best->slots > a->request.limit)
        text_append(buffer, PLAN_TEXT,
                    ", all of the limit (fleet-limit must hold the %d slots at %d)", best->slots,
                    a->request.limit);
    else if (best->slots == a->request.limit)
        text_append(buffer, PLAN_TEXT, ", all of the limit");
    else
        text_append(buffer, PLAN_TEXT, ", %d of the limit's %d", best->slots, a->request.limit);
}

const char *plan_why(const plan_answer *a, char buffer[PLAN_TEXT])
{
    const plan_option *best = &a->plan.options[a->plan.best];
    char rate[32], left[32];

    buffer[0] = '\0';
    if (!best->carries) {
        say_overloaded(a, best, buffer);
        return buffer;
    }
    frequency_format(a->request.rate, rate, sizeof rate);
    frequency_format(best->left_possible, left, sizeof left);
    say_replicas(a, best, buffer);
    say_use(a, best, buffer);
    if (best->left_carries)
        text_append(buffer, PLAN_TEXT, ", and with one pod lost it still carries %s (%s possible).",
                    rate, left);
    else if (best->left_in_flight > 0)
        text_append(buffer, PLAN_TEXT,
                    "; with one pod lost it makes %s, and the rest waits until that is back.",
                    left);
    else
        text_append(buffer, PLAN_TEXT,
                    "; without its only pod everything waits until that is back.");
    return buffer;
}

const char *plan_variable(const plan_answer *a, const char *key, char *buffer, size_t size)
{
    snprintf(buffer, size, "COMMANDBUS_DOMAINS_%s_%s", a->domain ? a->domain : "<DOMAIN>", key);
    for (char *c = buffer; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return buffer;
}
