/* The store of keys: a hash table of chains. */
#include "simulator_keys.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BUCKETS = 1024
};

struct key_entry {
    key_entry *next;
    uint64_t hash, request, turn;
    bool is_busy, is_kept;
    unsigned status;
    json_object *body;
    char text[]; /* scope, a blank, the key */
};

static uint64_t hash_of(const char *scope, const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (const char *c = scope; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    for (const char *c = key; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash ^ (hash >> 29);
}

bool keys_init(keys *k)
{
    *k = (keys){ .n_buckets = FIRST_BUCKETS };
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->ended, NULL);
    k->buckets = calloc(k->n_buckets, sizeof(key_entry *));
    return k->buckets;
}

void keys_done(keys *k)
{
    for (size_t i = 0; k->buckets && i < k->n_buckets; i++) {
        for (key_entry *entry = k->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            json_object_put(entry->body);
            free(entry);
        }
    }
    free(k->buckets);
    pthread_cond_destroy(&k->ended);
    pthread_mutex_destroy(&k->lock);
}

/* Without memory the chains get longer, and that is all. */
static void grow(keys *k)
{
    size_t n = k->n_buckets * 2;
    key_entry **buckets = k->n < k->n_buckets ? NULL : calloc(n, sizeof *buckets);

    if (!buckets)
        return;
    for (size_t i = 0; i < k->n_buckets; i++) {
        for (key_entry *entry = k->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            entry->next = buckets[entry->hash % n];
            buckets[entry->hash % n] = entry;
        }
    }
    free(k->buckets);
    k->buckets = buckets;
    k->n_buckets = n;
}

static bool is_of(const key_entry *entry, const char *scope, const char *key)
{
    size_t n = strlen(scope);

    return strncmp(entry->text, scope, n) == 0 && entry->text[n] == ' ' &&
           strcmp(entry->text + n + 1, key) == 0;
}

static key_entry *find_or_make(keys *k, const char *scope, const char *key, uint64_t request)
{
    uint64_t hash = hash_of(scope, key);
    size_t size = strlen(scope) + strlen(key) + 2;
    key_entry *entry = k->buckets[hash % k->n_buckets];

    while (entry && !(entry->hash == hash && is_of(entry, scope, key)))
        entry = entry->next;
    if (entry || !(entry = calloc(1, sizeof *entry + size)))
        return entry;
    grow(k);
    entry->hash = hash;
    entry->request = request;
    stpcpy(stpcpy(stpcpy(entry->text, scope), " "), key);
    entry->next = k->buckets[hash % k->n_buckets];
    k->buckets[hash % k->n_buckets] = entry;
    k->n++;
    return entry;
}

/* A copy: the entry's own may be on its way to another caller. */
static answer kept_answer(const key_entry *entry)
{
    json_object *copy = NULL;

    json_object_deep_copy(entry->body, &copy, NULL);
    return answer_json_adopt(entry->status, copy);
}

static key_state begin(keys *k, key_entry *entry, uint64_t request, uint64_t *turn, answer *first)
{
    if (entry->request != request)
        return KEY_MISUSED;
    while (entry->is_busy)
        pthread_cond_wait(&k->ended, &k->lock);
    if (entry->is_kept) {
        *first = kept_answer(entry);
        return KEY_REPEAT;
    }
    entry->is_busy = true;
    *turn = entry->turn++;
    return KEY_NEW;
}

key_state keys_begin(keys *k, const char *scope, const char *key, uint64_t request,
                     key_entry **entry, uint64_t *turn, answer *first)
{
    pthread_mutex_lock(&k->lock);
    *entry = find_or_make(k, scope, key, request);
    key_state state = *entry ? begin(k, *entry, request, turn, first) : KEY_NO_MEMORY;
    pthread_mutex_unlock(&k->lock);
    return state;
}

void keys_end(keys *k, key_entry *entry, const answer *a)
{
    bool decided = !a->hangs_up && (a->status / 100 == 2 || a->status == 422);

    pthread_mutex_lock(&k->lock);
    entry->is_busy = false;
    if (decided && json_object_deep_copy(a->body, &entry->body, NULL) == 0) {
        entry->status = a->status;
        entry->is_kept = true;
    }
    pthread_cond_broadcast(&k->ended);
    pthread_mutex_unlock(&k->lock);
}
