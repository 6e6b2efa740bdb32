/* Keys that an object has twice. They are compared as what they mean: "\u0061" is "a". */
#include "json_keys.h"

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* ---- a key as bytes of UTF-8, one after the other ---- */

typedef struct {
    const unsigned char *at;
    char bytes[4]; /* of an escape */
    size_t n, next;
} key_reader;

static unsigned hex_of(unsigned char c)
{
    return c <= '9' ? c - (unsigned)'0' : (c | 0x20u) - 'a' + 10u;
}

static unsigned code_unit(const unsigned char *hex)
{
    return hex_of(hex[0]) << 12 | hex_of(hex[1]) << 8 | hex_of(hex[2]) << 4 | hex_of(hex[3]);
}

static void encode(key_reader *r, unsigned code)
{
    r->next = 0;
    r->n = utf8_encode(code, r->bytes);
}

static void read_escape(key_reader *r)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    unsigned char letter = r->at[1];

    r->at += 2;
    if (letter != 'u') {
        const char *found = strchr(letters, letter);
        encode(r, found ? (unsigned char)meant[found - letters] : letter);
        return;
    }
    unsigned code = code_unit(r->at);
    r->at += 4;
    if (code >= 0xD800 && code <= 0xDBFF) {
        code = 0x10000 + ((code - 0xD800) << 10) + (code_unit(r->at + 2) - 0xDC00);
        r->at += 6;
    }
    encode(r, code);
}

/* -1 behind the last. */
static int next_byte(key_reader *r)
{
    if (r->next < r->n)
        return (unsigned char)r->bytes[r->next++];
    if (*r->at == '"')
        return -1;
    if (*r->at != '\\')
        return *r->at++;
    read_escape(r);
    return (unsigned char)r->bytes[r->next++];
}

static key_reader reader_of(const unsigned char *key)
{
    return (key_reader){ .at = key + 1 };
}

static uint64_t hash_of(const unsigned char *key)
{
    key_reader r = reader_of(key);
    uint64_t hash = 14695981039346656037u;

    for (int c; (c = next_byte(&r)) >= 0;)
        hash = (hash ^ (unsigned)c) * 1099511628211u;
    return hash;
}

/* By hash and then by what they say: an order, so that nobody gains by keys of one hash. */
static int compare(const json_key *a, const json_key *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    key_reader x = reader_of(a->at), y = reader_of(b->at);
    int c, d;
    do {
        c = next_byte(&x);
        d = next_byte(&y);
    } while (c == d && c >= 0);
    return c - d;
}

/* The same ones in the order of the text. */
static int compare_places(const void *a, const void *b)
{
    const json_key *x = a, *y = b;
    int order = compare(x, y);

    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* ---- keys ---- */

void json_keys_init(json_keys *k)
{
    k->keys = k->first;
    k->n = 0;
    k->room = JSON_KEYS_FIRST;
}

void json_keys_done(json_keys *k)
{
    if (k->keys != k->first)
        free(k->keys);
}

bool json_keys_add(json_keys *k, const unsigned char *key)
{
    if (k->n == k->room) {
        bool was_first = k->keys == k->first;
        json_key *more = realloc(was_first ? NULL : k->keys, 2 * k->room * sizeof *more);
        if (!more)
            return false;
        if (was_first)
            memcpy(more, k->first, sizeof k->first);
        k->keys = more;
        k->room *= 2;
    }
    k->keys[k->n++] = (json_key){ key, hash_of(key) };
    return true;
}

enum {
    FEW = 12 /* most objects: cheaper than sorting */
};

const unsigned char *json_keys_end(json_keys *k, size_t from)
{
    json_key *keys = k->keys + from;
    size_t n = k->n - from;
    const unsigned char *twice = NULL;

    k->n = from;
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                if (compare(&keys[i], &keys[j]) == 0)
                    return keys[i].at;
            }
        }
        return NULL;
    }
    qsort(keys, n, sizeof *keys, compare_places);
    for (size_t i = 1; i < n; i++) {
        if (compare(&keys[i - 1], &keys[i]) == 0 && (!twice || keys[i].at < twice))
            twice = keys[i].at;
    }
    return twice;
}
