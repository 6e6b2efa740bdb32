/* How often each of many keys came. */
#include "tally_keys.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a. */
static size_t hash(const char *text)
{
    uint64_t h = 14695981039346656037u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (size_t)h;
}

/* Where the key is, or the free place where it would be. */
static key_count *find(key_count *places, size_t n_places, const char *text)
{
    size_t i = hash(text) & (n_places - 1);

    while (places[i].text && strcmp(places[i].text, text) != 0)
        i = (i + 1) & (n_places - 1);
    return &places[i];
}

/* Never more than half full. */
static bool make_room(keys *k)
{
    if (k->n * 2 < k->n_places)
        return true;
    size_t n_places = k->n_places ? k->n_places * 2 : 1024;
    key_count *places = calloc(n_places, sizeof *places);
    if (!places)
        return false;
    for (size_t i = 0; i < k->n_places; i++) {
        if (k->places[i].text)
            *find(places, n_places, k->places[i].text) = k->places[i];
    }
    free(k->places);
    k->places = places;
    k->n_places = n_places;
    return true;
}

bool keys_count(keys *k, const char *text, size_t length)
{
    char *own = strndup(text, length);

    if (!own || !make_room(k)) {
        free(own);
        return false;
    }
    key_count *place = find(k->places, k->n_places, own);
    place->times++;
    if (place->times == 1) {
        place->text = own;
        k->n++;
        return true;
    }
    free(own);
    k->repeated += place->times == 2;
    return true;
}
