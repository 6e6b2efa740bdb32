/* Rolls by hashing: FNV-1a over the parts, then a mixer that lets each bit of them reach each bit
 * of the result. */
#include "dice.h"

#include <stddef.h>
#include <string.h>

static uint64_t add(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t dice_number(const dice *d, const char *what)
{
    uint64_t hash = 0xcbf29ce484222325u;

    hash = add(hash, &d->seed, sizeof d->seed);
    hash = add(hash, what, strlen(what) + 1); /* with its NUL: "ab" and "c" are not "a" and "bc" */
    hash = add(hash, d->key, strlen(d->key) + 1);
    hash = add(hash, &d->turn, sizeof d->turn);
    return mix(hash);
}

double dice_percent(const dice *d, const char *what)
{
    return (double)(dice_number(d, what) >> 11) * 0x1p-53 * 100;
}

int64_t dice_between(const dice *d, const char *what, int64_t least, int64_t most)
{
    return least + (int64_t)(dice_number(d, what) % (uint64_t)(most - least + 1));
}
