/* The parameters of one statement, in order. */
#ifndef CB_PARAMS_H
#define CB_PARAMS_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

enum {
    PARAMS_MAX = 32
};

/* Start with { 0 }. Points into itself: never copy one. */
typedef struct {
    int n;
    const char *values[PARAMS_MAX];
    int lengths[PARAMS_MAX];
    int formats[PARAMS_MAX]; /* 0 text, 1 binary */
    char numbers[PARAMS_MAX][24];
} params;

/* Borrowed until the statement has run. NULL is SQL's NULL. */
void params_text(params *p, const char *text_or_null);
void params_int(params *p, int64_t value);
/* 0 stands for "left out": NULL. */
void params_int_unless_0(params *p, int64_t value);
/* Of type double precision, which the statement must say ($1::double precision). */
void params_seconds(params *p, double seconds);
/* Of type timestamptz, in microseconds since the year 2000. */
void params_time(params *p, int64_t pg_micros);
/* Of type bytea, borrowed. */
void params_bytes(params *p, const char *bytes, size_t length);
/* A binary array, see below; borrowed. */
void params_array(params *p, const buffer *array);

/* ---- one-dimensional arrays in PostgreSQL's binary format: nothing to quote, nothing for the
 * server to parse. Begin with the number of items, then add exactly as many, in order ---- */

/* The element types' OIDs, fixed in every server. */
typedef enum {
    ARRAY_BOOL = 16,
    ARRAY_INT8 = 20,
    ARRAY_INT4 = 23,
    ARRAY_TEXT = 25,
    ARRAY_FLOAT8 = 701,
    ARRAY_UUID = 2950,
    ARRAY_JSONB = 3802,
} array_type;

void array_begin(buffer *b, array_type type, size_t n);
void array_add_null(buffer *b);
void array_add_bool(buffer *b, bool value);
void array_add_int4(buffer *b, int32_t value);
void array_add_int8(buffer *b, int64_t value);
void array_add_float8(buffer *b, double value);
void array_add_text(buffer *b, const char *text_or_null);
void array_add_jsonb(buffer *b, const char *text_or_null);
/* False, and nothing added, when the text is no UUID. */
bool array_add_uuid(buffer *b, const char *text);

#endif
