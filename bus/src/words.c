/* Reading arrays of plain words. */
#include "words.h"

#include <string.h>

bool words_next(const char **at, const char *const *names, size_t n, size_t *value)
{
    const char *word = *at + strspn(*at, "{,");
    size_t length = strcspn(word, ",}");

    for (size_t i = 0; i < n; i++) {
        if (strlen(names[i]) == length && memcmp(word, names[i], length) == 0) {
            *value = i;
            *at = word + length;
            return true;
        }
    }
    return false;
}
