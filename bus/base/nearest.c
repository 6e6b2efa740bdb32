/* "Did you mean ...?": the nearest known word by edit distance. */
#include "nearest.h"

#include <string.h>

#define LONGEST 64 /* of a word; nothing is near a longer one */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that make a into b. */
static size_t edit_distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= m; j++)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t replaced = last[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(last[j] + 1, row[j - 1] + 1, replaced);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        size_t *free_row = before;
        before = last, last = row, row = free_row;
    }
    return last[m];
}

bool nearest_offer(nearest_word *n, const char *known)
{
    size_t length = strlen(known);

    if (n->length == 0 || n->length > LONGEST || length > LONGEST)
        return false;
    size_t distance = edit_distance(n->word, n->length, known, length);
    /* The beginning of a known word is near, too. */
    if (n->length >= 3 && n->length < length && strncmp(n->word, known, n->length) == 0)
        distance = 1;
    bool is_near = distance <= 1 + length / 4 && distance < length;
    if (!is_near || (n->best && distance >= n->distance))
        return false;
    n->best = known;
    n->distance = distance;
    return true;
}
