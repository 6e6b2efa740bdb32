/* What processes in flight may take of an instance's memory, over all its domains and slots: the
 * text of claims, and the memory of runs. With the limit of one process (domain.content_limit) this
 * is what keeps an instance within the smallest memory limit that deploy/ has, 256 MiB, whatever is
 * sent to its processes. */
#ifndef WORKER_PROCESS_MEMORY_H
#define WORKER_PROCESS_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t running;         /* bytes of memory that runs were given; guarded, as the rest */
    uint64_t next, serving; /* who waits is served in the order of coming */
} process_memory;

void process_memory_init(process_memory *m);
void process_memory_done(process_memory *m);

/* How many bytes of text the next claim may bring when those that are alive hold so many; 0: it has
 * to wait. */
int64_t process_memory_room(size_t claimed);

/* Waits until a run that takes so many bytes may begin; one that is larger than all there is runs
 * alone. What is not worth counting never waits. Gives what is to be given back. With `ending`
 * nobody waits any more. */
size_t process_memory_take(process_memory *m, size_t bytes, const atomic_bool *ending);
void process_memory_give(process_memory *m, size_t bytes);

/* Whether memory of this size is worth being given back to the system at once. */
bool process_memory_is_large(size_t bytes);

#endif
