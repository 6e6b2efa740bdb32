/* Bookings by id: a hash table of chains of a fixed width, since nobody books millions here. */
#include "bookings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 16384,
    LONGEST_STATUS = 12
};

struct booking {
    booking *next;
    long releases; /* calls with different keys */
    char status[LONGEST_STATUS];
    char *key;
    char id[]; /* and behind it the key */
};

bool bookings_init(bookings *b)
{
    *b = (bookings){ .n_buckets = BUCKETS };
    pthread_mutex_init(&b->lock, NULL);
    b->buckets = calloc(b->n_buckets, sizeof(booking *));
    return b->buckets;
}

void bookings_done(bookings *b)
{
    for (size_t i = 0; b->buckets && i < b->n_buckets; i++) {
        for (booking *one = b->buckets[i], *next; one; one = next) {
            next = one->next;
            free(one);
        }
    }
    free(b->buckets);
    pthread_mutex_destroy(&b->lock);
}

static booking **bucket_of(const bookings *b, const char *id)
{
    uint32_t hash = 2166136261u;

    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 16777619u;
    return &b->buckets[hash % b->n_buckets];
}

bool bookings_add(bookings *b, const char *key, const char *id, const char *status)
{
    size_t n = strlen(id) + 1;
    booking *one = calloc(1, sizeof *one + n + strlen(key) + 1);

    if (!one)
        return false;
    one->key = one->id + n;
    strcpy(one->id, id);
    strcpy(one->key, key);
    strncpy(one->status, status, LONGEST_STATUS - 1);
    pthread_mutex_lock(&b->lock);
    booking **bucket = bucket_of(b, id);
    one->next = *bucket;
    *bucket = one;
    b->n++;
    b->declined += strcmp(status, "DECLINED") == 0;
    pthread_mutex_unlock(&b->lock);
    return true;
}

bool bookings_release(bookings *b, const char *id, bool *again)
{
    pthread_mutex_lock(&b->lock);
    booking *one = *bucket_of(b, id);
    while (one && strcmp(one->id, id) != 0)
        one = one->next;
    if (one) {
        *again = one->releases++ > 0;
        b->repeated_releases += *again;
        b->released += !*again && strcmp(one->status, "DECLINED") != 0;
    }
    pthread_mutex_unlock(&b->lock);
    return one;
}

json_object *bookings_counts(bookings *b)
{
    json_object *json = json_object_new_object();

    pthread_mutex_lock(&b->lock);
    long booked = b->n - b->declined, released = b->released, again = b->repeated_releases,
         declined = b->declined;
    pthread_mutex_unlock(&b->lock);
    json_object_object_add(json, "booked", json_object_new_int64(booked));
    json_object_object_add(json, "declined", json_object_new_int64(declined));
    json_object_object_add(json, "released", json_object_new_int64(released));
    json_object_object_add(json, "released_again", json_object_new_int64(again));
    json_object_object_add(json, "open", json_object_new_int64(booked - released));
    return json;
}

static json_object *booking_json(const booking *one)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "key", json_object_new_string(one->key));
    json_object_object_add(json, "id", json_object_new_string(one->id));
    json_object_object_add(json, "status", json_object_new_string(one->status));
    json_object_object_add(json, "released", json_object_new_int64(one->releases));
    return json;
}

json_object *bookings_list(bookings *b)
{
    json_object *list = json_object_new_array();

    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->n_buckets; i++) {
        for (const booking *one = b->buckets[i]; one; one = one->next)
            json_object_array_add(list, booking_json(one));
    }
    pthread_mutex_unlock(&b->lock);
    return list;
}
