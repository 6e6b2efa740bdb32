/* The keys of the objects that are being scanned, to find one that an object has twice. jsonb and
 * json-c keep the last of two, which must not happen to an amount. */
#ifndef CB_JSON_KEYS_H
#define CB_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At its opening quote, in a text that has been scanned. */
typedef struct {
    const unsigned char *at;
    uint64_t hash;
} json_key;

enum {
    JSON_KEYS_FIRST = 64 /* without an allocation */
};

/* Those of an object lie behind those of the objects around it. */
typedef struct {
    json_key first[JSON_KEYS_FIRST];
    json_key *keys; /* `first`, or allocated */
    size_t n, room;
} json_keys;

void json_keys_init(json_keys *k);
void json_keys_done(json_keys *k);

/* False without memory. */
bool json_keys_add(json_keys *k, const unsigned char *key);

/* The keys from `from` on are those of one object, which ends here: forgets them. NULL, or the
 * first that was there before, however each of the two is escaped. Takes n log n. */
const unsigned char *json_keys_end(json_keys *k, size_t from);

#endif
