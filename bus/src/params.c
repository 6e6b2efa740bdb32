/* Collecting the parameters of a statement. */
#include "params.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "uuid_bytes.h"
#include "wire.h"

static void put(params *p, const char *value, int length, int format)
{
    assert(p->n < PARAMS_MAX);
    p->values[p->n] = value;
    p->lengths[p->n] = length;
    p->formats[p->n] = format;
    p->n++;
}

void params_text(params *p, const char *text_or_null)
{
    put(p, text_or_null, 0, 0);
}

void params_int(params *p, int64_t value)
{
    char *number = p->numbers[p->n];

    snprintf(number, sizeof p->numbers[0], "%" PRId64, value);
    put(p, number, 0, 0);
}

void params_int_unless_0(params *p, int64_t value)
{
    if (value)
        params_int(p, value);
    else
        params_text(p, NULL);
}

static void put_64(params *p, uint64_t bits)
{
    char *number = p->numbers[p->n];

    wire_put64((unsigned char *)number, bits);
    put(p, number, 8, 1);
}

void params_seconds(params *p, double seconds)
{
    uint64_t bits;

    memcpy(&bits, &seconds, sizeof bits);
    put_64(p, bits);
}

void params_time(params *p, int64_t pg_micros)
{
    put_64(p, (uint64_t)pg_micros);
}

void params_bytes(params *p, const char *bytes, size_t length)
{
    put(p, bytes, (int)length, 1);
}

void params_array(params *p, const buffer *array)
{
    put(p, array->bytes, (int)array->length, 1);
}

/* ---- arrays, as array_recv() in the server reads them ---- */

static void add32(buffer *b, uint32_t value)
{
    unsigned char bytes[4];

    wire_put32(bytes, value);
    buffer_add(b, bytes, sizeof bytes);
}

static void add64(buffer *b, uint64_t value)
{
    unsigned char bytes[8];

    wire_put64(bytes, value);
    buffer_add(b, bytes, sizeof bytes);
}

void array_begin(buffer *b, array_type type, size_t n)
{
    add32(b, n ? 1 : 0); /* dimensions: an empty array has none */
    add32(b, 1);         /* there may be NULLs */
    add32(b, (uint32_t)type);
    if (n) {
        add32(b, (uint32_t)n);
        add32(b, 1); /* the first index */
    }
}

void array_add_null(buffer *b)
{
    add32(b, UINT32_MAX);
}

void array_add_bool(buffer *b, bool value)
{
    unsigned char byte = value;

    add32(b, 1);
    buffer_add(b, &byte, 1);
}

void array_add_int4(buffer *b, int32_t value)
{
    add32(b, 4);
    add32(b, (uint32_t)value);
}

void array_add_int8(buffer *b, int64_t value)
{
    add32(b, 8);
    add64(b, (uint64_t)value);
}

void array_add_float8(buffer *b, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    add32(b, 8);
    add64(b, bits);
}

void array_add_text(buffer *b, const char *text_or_null)
{
    if (!text_or_null) {
        array_add_null(b);
        return;
    }
    size_t length = strlen(text_or_null);
    add32(b, (uint32_t)length);
    buffer_add(b, text_or_null, length);
}

void array_add_jsonb(buffer *b, const char *text_or_null)
{
    if (!text_or_null) {
        array_add_null(b);
        return;
    }
    size_t length = strlen(text_or_null);
    add32(b, (uint32_t)length + 1);
    buffer_add(b, "\x01", 1); /* the version of the format */
    buffer_add(b, text_or_null, length);
}

bool array_add_uuid(buffer *b, const char *text)
{
    unsigned char bytes[16];

    if (!uuid_to_bytes(text, bytes))
        return false;
    add32(b, sizeof bytes);
    buffer_add(b, bytes, sizeof bytes);
    return true;
}
