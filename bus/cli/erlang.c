/* How long work waits for a free slot. */
#include "erlang.h"

#include <math.h>

/* The chance that all slots of a system without a queue are busy, slot by slot: neither powers nor
 * factorials, which overflow at some 170 slots, and every term lies between 0 and 1. */
static double erlang_b(int slots, double load)
{
    double blocked = 1;

    for (int n = 1; n <= slots; n++)
        blocked = load * blocked / (n + load * blocked);
    return blocked;
}

double erlang_c(int slots, double load)
{
    if (load >= slots)
        return 1;
    double blocked = erlang_b(slots, load);
    return blocked / (1 - load / slots * (1 - blocked));
}

/* Calls a second that the slots could make beyond what arrives. */
static double spare(int slots, double rate, double seconds)
{
    return slots / seconds - rate;
}

double erlang_mean_wait(int slots, double rate, double seconds)
{
    return erlang_c(slots, rate * seconds) / spare(slots, rate, seconds);
}

double erlang_rare_wait(int slots, double rate, double seconds, double one_in)
{
    double chance = erlang_c(slots, rate * seconds) * one_in;

    return chance > 1 ? log(chance) / spare(slots, rate, seconds) : 0;
}
