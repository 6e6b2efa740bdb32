/* Idempotency keys: the first answer of a key is the answer of each call with it.
 *
 * Kept are answers after which something has been decided (2xx, 422). A call that came to nothing
 * (400, 429, 5xx, no answer) leaves its key free: the next one is a new try, and `turn` counts
 * them. Keys are kept in memory, for ever. */
#ifndef SIMULATOR_KEYS_H
#define SIMULATOR_KEYS_H

#include <pthread.h>
#include <stdint.h>

#include "answer.h"

typedef struct key_entry key_entry;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    key_entry **buckets;
    size_t n_buckets, n;
} keys;

typedef enum {
    KEY_NEW,     /* the caller acts, and then says so with keys_end */
    KEY_REPEAT,  /* *first is what the first call got */
    KEY_MISUSED, /* the key was there with another request */
    KEY_NO_MEMORY
} key_state;

bool keys_init(keys *k);
void keys_done(keys *k);

/* A call with this key begins; one that runs already with the same key is waited for. `request` is
 * a hash of what is asked, `scope` keeps the keys of one endpoint apart from those of another. With
 * KEY_NEW *entry and *turn (0 for the first) are set. */
key_state keys_begin(keys *k, const char *scope, const char *key, uint64_t request,
                     key_entry **entry, uint64_t *turn, answer *first);
/* The call is over, and this is its answer. */
void keys_end(keys *k, key_entry *entry, const answer *a);

#endif
