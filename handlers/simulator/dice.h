/* Chance that can be repeated: a roll is a function of what it is for, not of who comes first.
 *
 * (seed, what, key, turn) always gives the same number, where `turn` counts the calls with this
 * key. So a run with the same seed and the same keys has the same outcomes, however its calls
 * overlap. */
#ifndef SIMULATOR_DICE_H
#define SIMULATOR_DICE_H

#include <stdint.h>

typedef struct {
    uint64_t seed;
    const char *key;
    uint64_t turn;
} dice;

/* `what` keeps the rolls of one call apart: its outcome, its delay, its score. */
uint64_t dice_number(const dice *d, const char *what);
/* At least 0, less than 100. */
double dice_percent(const dice *d, const char *what);
/* From `least` to `most`, both among them. */
int64_t dice_between(const dice *d, const char *what, int64_t least, int64_t most);

#endif
