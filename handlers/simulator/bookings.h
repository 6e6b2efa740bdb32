/* What has been booked at an API and what of it was released: for tests that reconcile. */
#ifndef SIMULATOR_BOOKINGS_H
#define SIMULATOR_BOOKINGS_H

#include <json-c/json_object.h>
#include <pthread.h>
#include <stdbool.h>

typedef struct booking booking;

typedef struct {
    pthread_mutex_t lock;
    booking **buckets;
    size_t n_buckets;
    long n, released, repeated_releases, declined;
} bookings;

bool bookings_init(bookings *b);
void bookings_done(bookings *b);

/* `status` is "" or APPROVED, PENDING, DECLINED; what was declined holds nothing. False without
 * memory. */
bool bookings_add(bookings *b, const char *key, const char *id, const char *status);
/* False: there is no such booking. One that is released already stays so: *again. */
bool bookings_release(bookings *b, const char *id, bool *again);

/* {"booked", "released", "open", …} and a list of all. */
json_object *bookings_counts(bookings *b);
json_object *bookings_list(bookings *b);

#endif
