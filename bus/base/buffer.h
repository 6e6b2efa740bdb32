/* A string of bytes that grows. Out of memory is remembered, so that a caller who appends many
 * times asks once, at the end. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *bytes; /* NUL-terminated once something was added; NULL before */
    size_t length;
    size_t room;
    bool failed; /* No memory, or more than one parameter of a statement can hold. */
} buffer;

/* A local that is freed when its block ends. */
#define OWNED_BUFFER(name) __attribute__((cleanup(buffer_done))) buffer name = { 0 }

void buffer_add(buffer *b, const void *bytes, size_t n);
void buffer_add_text(buffer *b, const char *text);
/* `text` as a JSON string, with its quotes. */
void buffer_add_json_string(buffer *b, const char *text);
/* With six decimals, whatever the locale. `seconds` must be finite. */
void buffer_add_seconds(buffer *b, double seconds);
void buffer_add_int(buffer *b, long long value);

/* Forgets the content, keeps the memory. */
void buffer_clear(buffer *b);
void buffer_done(buffer *b);

#endif
