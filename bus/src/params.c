/* Collecting the parameters of a statement. */
#include "params.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
