/* Growing strings. */
#include "buffer.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_escape.h"

/* PostgreSQL takes at most 1 GB in one value. */
static const size_t most = 0x3FFFFFFF;

static bool make_room(buffer *b, size_t n)
{
    if (b->failed || n > most - b->length)
        b->failed = true;
    if (b->failed)
        return false;

    size_t needed = b->length + n + 1;
    if (needed <= b->room)
        return true;

    size_t room = b->room ? b->room : 256;
    while (room < needed)
        room *= 2;
    char *bytes = realloc(b->bytes, room);
    if (!bytes) {
        b->failed = true;
        return false;
    }
    b->bytes = bytes;
    b->room = room;
    return true;
}

void buffer_add(buffer *b, const void *bytes, size_t n)
{
    if (!make_room(b, n))
        return;
    memcpy(b->bytes + b->length, bytes, n);
    b->length += n;
    b->bytes[b->length] = '\0';
}

void buffer_add_text(buffer *b, const char *text)
{
    buffer_add(b, text, strlen(text));
}

void buffer_add_json_string(buffer *b, const char *text)
{
    char escape[JSON_ESCAPE_SIZE];

    buffer_add(b, "\"", 1);
    while (*text) {
        size_t plain = 0, escaped = 0;
        while (text[plain] && !(escaped = json_escape((unsigned char)text[plain], escape)))
            plain++;
        buffer_add(b, text, plain);
        buffer_add(b, escape, escaped);
        text += plain + (escaped > 0);
    }
    buffer_add(b, "\"", 1);
}

void buffer_add_seconds(buffer *b, double seconds)
{
    char digits[32];
    const double largest = 1e12; /* 30,000 years; keeps the product below within 64 bits. */
    double clamped = seconds > largest ? largest : seconds < -largest ? -largest : seconds;
    int64_t micros = (int64_t)(clamped * 1e6 + (clamped < 0 ? -0.5 : 0.5));
    int64_t size = micros < 0 ? -micros : micros;

    snprintf(digits, sizeof digits, "%s%" PRId64 ".%06" PRId64, micros < 0 ? "-" : "",
             size / 1000000, size % 1000000);
    buffer_add_text(b, digits);
}

void buffer_add_int(buffer *b, long long value)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%lld", value);
    buffer_add_text(b, digits);
}

void buffer_clear(buffer *b)
{
    b->length = 0;
    b->failed = false;
    if (b->bytes)
        b->bytes[0] = '\0';
}

void buffer_done(buffer *b)
{
    free(b->bytes);
    *b = (buffer){ 0 };
}
