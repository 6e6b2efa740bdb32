/* Connections, items and the order in which each brings them. */
#include "crew.h"

#include "seed.h"

crew crew_open(const char *conninfo)
{
    crew c = { 0 };
    unsigned seed = test_seed();

    for (unsigned i = 0; i < CREW; i++) {
        c.db[i] = test_bus_open(conninfo);
        c.seed[i] = seed + i;
        c.fine[i] = true;
    }
    return c;
}

void crew_close(crew *c)
{
    for (int i = 0; i < CREW; i++)
        cb_db_free(c->db[i]);
    free(c->items);
}

void crew_take(crew *c, const cb_claim *claim, size_t n, cb_outcome outcome)
{
    cr_assert_eq(cb_claim_count(claim), n, "%zu claimed, not %zu", cb_claim_count(claim), n);
    free(c->items);
    c->items = calloc(n, sizeof *c->items);
    c->n = n;
    for (size_t i = 0; i < n; i++)
        c->items[i] = test_outcome(cb_claim_at(claim, i), outcome);
}

cb_settlement *crew_shuffled(crew *c, size_t i)
{
    cb_settlement *items = calloc(c->n, sizeof *items);

    for (unsigned at = 0; items && at < c->n; at++) {
        unsigned other = test_random(&c->seed[i], at + 1);
        items[at] = items[other];
        items[other] = c->items[at];
    }
    return items;
}

void crew_expect_fine(const crew *c)
{
    for (int i = 0; i < CREW; i++)
        cr_assert(c->fine[i], "worker %d: %s %s", i, c->e[i].sqlstate, c->e[i].message);
}
