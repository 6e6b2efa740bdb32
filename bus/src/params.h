/* The parameters of one statement, in order. */
#ifndef CB_PARAMS_H
#define CB_PARAMS_H

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
/* A binary array (array.h), borrowed. */
void params_array(params *p, const buffer *array);

#endif
