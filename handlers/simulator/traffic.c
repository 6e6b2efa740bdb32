/* Counting calls. */
#include "traffic.h"

void traffic_init(traffic *t)
{
    *t = (traffic){ .calls = 0 };
    pthread_mutex_init(&t->lock, NULL);
}

void traffic_done(traffic *t)
{
    pthread_mutex_destroy(&t->lock);
}

bool traffic_enter(traffic *t, int64_t capacity)
{
    pthread_mutex_lock(&t->lock);
    bool fits = t->in_flight < capacity;
    t->calls++;
    if (t->in_flight + 1 > t->most_in_flight)
        t->most_in_flight = t->in_flight + 1;
    t->in_flight += fits;
    t->rejected += !fits;
    pthread_mutex_unlock(&t->lock);
    return fits;
}

void traffic_leave(traffic *t)
{
    pthread_mutex_lock(&t->lock);
    t->in_flight--;
    pthread_mutex_unlock(&t->lock);
}

static void count(traffic *t, long *what)
{
    pthread_mutex_lock(&t->lock);
    ++*what;
    pthread_mutex_unlock(&t->lock);
}

void traffic_count(traffic *t, roll r)
{
    count(t, &t->by_roll[r]);
}

void traffic_count_repeat(traffic *t)
{
    count(t, &t->repeats);
}

void traffic_count_invalid(traffic *t)
{
    count(t, &t->invalid);
}

void traffic_reset(traffic *t)
{
    pthread_mutex_lock(&t->lock);
    t->calls = t->rejected = t->repeats = t->invalid = 0;
    t->most_in_flight = t->in_flight;
    for (int r = 0; r < ROLLS; r++)
        t->by_roll[r] = 0;
    pthread_mutex_unlock(&t->lock);
}

json_object *traffic_json(traffic *t)
{
    json_object *json = json_object_new_object(), *outcomes = json_object_new_object();

    pthread_mutex_lock(&t->lock);
    const struct {
        const char *name;
        long value;
    } numbers[] = {
        { "calls", t->calls },
        { "in_flight", t->in_flight },
        { "most_in_flight", t->most_in_flight },
        { "rejected_429", t->rejected },
        { "repeats", t->repeats },
        { "invalid", t->invalid },
    };
    for (int r = 0; r < ROLLS; r++)
        json_object_object_add(outcomes, roll_name((roll)r), json_object_new_int64(t->by_roll[r]));
    pthread_mutex_unlock(&t->lock);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_object_add(json, numbers[i].name, json_object_new_int64(numbers[i].value));
    json_object_object_add(json, "outcomes", outcomes);
    return json;
}
