/* The gate: there is only one, since each test has a process of its own. */
#include "gate.h"

#include <pthread.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool closed;
    size_t may_pass, entered, left, most;
} gate = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void set(bool closed, size_t may_pass)
{
    pthread_mutex_lock(&gate.mutex);
    gate.closed = closed;
    gate.may_pass += may_pass;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mutex);
}

void gate_close(void)
{
    set(true, 0);
}

void gate_open(void)
{
    set(false, 0);
}

void gate_let(size_t n)
{
    set(true, n);
}

void gate_pass(void)
{
    pthread_mutex_lock(&gate.mutex);
    gate.entered++;
    if (gate.entered - gate.left > gate.most)
        gate.most = gate.entered - gate.left;
    while (gate.closed && gate.may_pass == 0)
        pthread_cond_wait(&gate.changed, &gate.mutex);
    if (gate.closed)
        gate.may_pass--;
    gate.left++;
    pthread_mutex_unlock(&gate.mutex);
}

static size_t gate_look(const size_t *count, const size_t *less)
{
    pthread_mutex_lock(&gate.mutex);
    size_t n = *count - (less ? *less : 0);
    pthread_mutex_unlock(&gate.mutex);
    return n;
}

size_t gate_entered(void)
{
    return gate_look(&gate.entered, NULL);
}

size_t gate_left(void)
{
    return gate_look(&gate.left, NULL);
}

size_t gate_waiting(void)
{
    return gate_look(&gate.entered, &gate.left);
}

size_t gate_most(void)
{
    return gate_look(&gate.most, NULL);
}
