/* Several workers of domain fx with a connection each, who bring outcomes of the same claim. */
#ifndef TEST_SUPPORT_CREW_H
#define TEST_SUPPORT_CREW_H

#include "claims.h"

enum {
    CREW = 4
};

typedef struct {
    cb_db *db[CREW];
    bool fine[CREW]; /* what the last call of each said */
    cb_error e[CREW];
    unsigned seed[CREW];
    cb_settlement *items; /* borrowed strings are static */
    size_t n;
} crew;

crew crew_open(const char *conninfo);
void crew_close(crew *c);

/* Everybody is to settle what was claimed, with this outcome. Fails unless it was `n` commands. */
void crew_take(crew *c, const cb_claim *claim, size_t n, cb_outcome outcome);

/* A copy of the items in the order of worker i, another one at each call. The caller frees it. */
cb_settlement *crew_shuffled(crew *c, size_t i);

/* Fails unless the last call of each succeeded. */
void crew_expect_fine(const crew *c);

#endif
