/* Claiming commands: each with a lease and a fence, which settle and extend must bring back. Not
 * installed. */
#ifndef COMMANDBUS_RECEIVE_H
#define COMMANDBUS_RECEIVE_H

#include <commandbus/context.h>
#include <commandbus/db.h>
#include <stddef.h>
#include <stdint.h>

/* Where a domain is read. Keeps its place in the queue between claims, so that the cost of one does
 * not grow with what was deleted before it. Borrows nothing; belongs to one thread at a time. */
typedef struct cb_receiver cb_receiver;

/* What is 0 takes its default in []. */
typedef struct {
    const char *worker;          /* required: who holds the lease */
    double vt_seconds;           /* [30] */
    int default_max_attempts;    /* for commands that bring none [3] */
    int default_timeout_seconds; /* for commands that bring none [30] */
    int64_t claim_bytes;         /* what one claim reads of payloads, and one more [32 MiB] */
} cb_receive_options;

CB_API bool cb_receiver_open(const char *domain, const cb_receive_options *options,
                             cb_receiver **ret, cb_error *e) CB_NODISCARD;
CB_API void cb_receiver_free(cb_receiver *r);
DEFINE_OWNED(cb_receiver, cb_receiver_free)
/* claim_bytes from the next claim on; 0 for the default. */
CB_API void cb_receiver_claim_bytes(cb_receiver *r, int64_t claim_bytes);

/* What one claim brought, with the memory of its commands. */
typedef struct cb_claim cb_claim;

/* Takes up to `quantity` due commands. Fewer, or none, is no error. The caller owns *ret. */
CB_API bool cb_receive(cb_db *db, cb_receiver *r, int quantity, cb_claim **ret,
                       cb_error *e) CB_NODISCARD;

CB_API size_t cb_claim_count(const cb_claim *claim);
/* Borrowed from the claim. i < cb_claim_count. */
CB_API const cb_command *cb_claim_at(const cb_claim *claim, size_t i);
/* Messages of this claim that no command stands behind: archived and audited POISON_ARCHIVED. */
CB_API size_t cb_claim_poisoned(const cb_claim *claim);
/* Commands whose holders died max_attempts times: now in the TSQ as LEASE_EXHAUSTED. */
CB_API size_t cb_claim_exhausted(const cb_claim *claim);
/* More was due than claim_bytes had room for. */
CB_API bool cb_claim_more(const cb_claim *claim);
/* The memory that the claim takes. */
CB_API size_t cb_claim_bytes(const cb_claim *claim);
CB_API void cb_claim_free(cb_claim *claim);
DEFINE_OWNED(cb_claim, cb_claim_free)

#endif
