/* What plan says in words, whoever reads it. */
#include "plan_answer.h"

#include "frequency.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const plan_assumptions[] = {
    "Arrivals are independent of each other (Poisson). Batches and bursts wait longer than shown.",
    "Times of calls vary much (exponential). Most APIs vary less: then waits are shorter, down to half.",
    "Retries are arrivals too: add them to --rate (--from-database has counted them).",
    "A limit on calls in flight bounds calls a second only as long as calls do not get faster.",
    NULL,
};

static void say(char buffer[PLAN_TEXT], const char *fmt, ...) CB_PRINTF(2, 3);

/* Appends. */
static void say(char buffer[PLAN_TEXT], const char *fmt, ...)
{
    size_t used = strlen(buffer);
    va_list args;

    va_start(args, fmt);
    vsnprintf(buffer + used, PLAN_TEXT - used, fmt, args);
    va_end(args);
}

static void say_overloaded(const plan_answer *a, const plan_option *best, char buffer[PLAN_TEXT])
{
    char rate[32], possible[32], grows[32];

    say(buffer, "no option carries %s: the limit of %d makes %s at most, ",
        frequency_format(a->request.rate, rate, sizeof rate), a->request.limit,
        frequency_format(best->possible, possible, sizeof possible));
    if (best->headroom < 0)
        say(buffer, "so the queue grows by %s without end.",
            frequency_format(-best->headroom, grows, sizeof grows));
    else
        say(buffer, "with nothing to spare, so the queue never gets empty again.");
}

static void say_replicas(const plan_answer *a, const plan_option *best, char buffer[PLAN_TEXT])
{
    const plan *p = &a->plan;

    if (best->replicas >= a->request.min_replicas)
        say(buffer, "%d replicas", best->replicas);
    else if (best->replicas >= p->worthwhile_replicas)
        say(buffer, "as many replicas as the limit has calls (--min-replicas %d would need more)",
            a->request.min_replicas);
    else
        say(buffer, "fewer replicas than --min-replicas %d, which do not carry the rate",
            a->request.min_replicas);
}

static void say_use(const plan_answer *a, const plan_option *best, char buffer[PLAN_TEXT])
{
    if (best->slots > a->request.limit)
        say(buffer, ", all of the limit (fleet-limit must hold the %d slots at %d)", best->slots,
            a->request.limit);
    else if (best->slots == a->request.limit)
        say(buffer, ", all of the limit");
    else
        say(buffer, ", %d of the limit's %d", best->slots, a->request.limit);
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
        say(buffer, ", and with one pod lost it still carries %s (%s possible).", rate, left);
    else if (best->left_in_flight > 0)
        say(buffer, "; with one pod lost it makes %s, and the rest waits until that is back.",
            left);
    else
        say(buffer, "; without its only pod everything waits until that is back.");
    return buffer;
}

const char *plan_variable(const plan_answer *a, const char *key, char *buffer, size_t size)
{
    snprintf(buffer, size, "COMMANDBUS_DOMAINS_%s_%s", a->domain ? a->domain : "<DOMAIN>", key);
    for (char *c = buffer; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return buffer;
}
