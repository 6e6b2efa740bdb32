/* The memory of processes in flight. */
#include "process_memory.h"

#include "clock.h"

enum {
    MIB = 1024 * 1024,
    CLAIM_BYTES = 8 * MIB, /* and one process more: a claim takes at least one */
    RUN_BYTES = 96 * MIB,
    LARGE_BYTES = MIB, /* what is less is not counted: slots times this much is there as well */
};

static const double look_seconds = 0.2;

void process_memory_init(process_memory *m)
{
    pthread_mutex_init(&m->mutex, NULL);
    waiting_init(&m->changed);
}

void process_memory_done(process_memory *m)
{
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->mutex);
}

bool process_memory_is_large(size_t bytes)
{
    return bytes >= LARGE_BYTES;
}

int64_t process_memory_room(size_t claimed)
{
    return claimed < CLAIM_BYTES ? (int64_t)(CLAIM_BYTES - claimed) : 0;
}

static bool has_room(const process_memory *m, size_t bytes)
{
    return m->running == 0 || (m->running < RUN_BYTES && bytes <= RUN_BYTES - m->running);
}

size_t process_memory_take(process_memory *m, size_t bytes, const atomic_bool *ending)
{
    if (!process_memory_is_large(bytes))
        return 0;
    pthread_mutex_lock(&m->mutex);
    uint64_t turn = m->next++;
    while (!atomic_load(ending) && (turn != m->serving || !has_room(m, bytes)))
        waiting_for(&m->changed, &m->mutex, seconds_to_ns(look_seconds));
    m->serving++;
    m->running += bytes;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->mutex);
    return bytes;
}

void process_memory_give(process_memory *m, size_t bytes)
{
    if (bytes == 0)
        return;
    pthread_mutex_lock(&m->mutex);
    m->running -= bytes;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->mutex);
}
