/* One-dimensional array parameters in PostgreSQL's binary format: nothing to quote, nothing for the
 * server to parse. Begin with the number of items, then add exactly as many, in order. */
#ifndef CB_ARRAY_H
#define CB_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

/* The element types' OIDs, fixed in every server. */
typedef enum {
    ARRAY_BOOL = 16,
    ARRAY_INT8 = 20,
    ARRAY_TEXT = 25,
    ARRAY_FLOAT8 = 701,
    ARRAY_UUID = 2950,
    ARRAY_JSONB = 3802,
} array_type;

void array_begin(buffer *b, array_type type, size_t n);
void array_add_null(buffer *b);
void array_add_bool(buffer *b, bool value);
void array_add_int8(buffer *b, int64_t value);
void array_add_float8(buffer *b, double value);
void array_add_text(buffer *b, const char *text_or_null);
void array_add_jsonb(buffer *b, const char *text_or_null);
/* False, and nothing added, when the text is no UUID. */
bool array_add_uuid(buffer *b, const char *text);

#endif
