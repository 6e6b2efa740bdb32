/* "Did you mean ...?": the nearest of the words that were offered. */
#include "config_nearest.h"

#include <string.h>

#define LONGEST 64

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters changed, added and dropped, and neighbours swapped, counted row by row. */
size_t nearest_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    size_t cost[LONGEST + 1][LONGEST + 1];

    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            size_t least = smaller(cost[i - 1][j], cost[i][j - 1]) + 1;
            least = smaller(least, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                least = smaller(least, cost[i - 2][j - 2] + 1);
            cost[i][j] = least;
        }
    }
    return cost[n][m];
}

bool nearest_offer(nearest_word *n, const char *candidate)
{
    size_t distance = nearest_distance(n->word, candidate);
    size_t near = 1 + strlen(candidate) / 4;

    if (distance > near || (n->best && distance >= n->distance))
        return false;
    n->best = candidate;
    n->distance = distance;
    return true;
}
