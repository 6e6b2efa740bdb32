/* What harnesses share. A harness is one function that libFuzzer calls with bytes: it must neither
 * crash nor find a property broken. Inputs are text where they can be, one thing a line, so that
 * people can write them. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <commandbus/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property: what breaks it ends the program, and libFuzzer keeps the input. */
#define FUZZ_CHECK(condition, ...)                                                  \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                           \
            fputc('\n', stderr);                                                    \
            abort();                                                                \
        }                                                                           \
    } while (0)

/* The bytes with a NUL behind them and not one byte more, so that AddressSanitizer sees every read
 * beyond them. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    FUZZ_CHECK(text, "no memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static inline void fuzz_text_drop(char **text)
{
    free(*text);
}
#define FUZZ_TEXT(name, data, size) \
    __attribute__((cleanup(fuzz_text_drop))) char *name = fuzz_text((data), (size))

/* The lines, each a text of its own; a NUL ends the text in its line. The last entry is NULL. */
enum {
    FUZZ_LINES = 64
};
typedef struct {
    char *line[FUZZ_LINES + 1];
    int n;
} fuzz_lines;

static inline fuzz_lines fuzz_split(const uint8_t *data, size_t size)
{
    fuzz_lines lines = { .n = 0 };

    while (size > 0 && lines.n < FUZZ_LINES) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t length = end ? (size_t)(end - data) : size;
        lines.line[lines.n++] = fuzz_text(data, length);
        length += end != NULL;
        data += length;
        size -= length;
    }
    return lines;
}

static inline void fuzz_lines_drop(fuzz_lines *lines)
{
    for (int i = 0; i < lines->n; i++)
        free(lines->line[i]);
}
#define FUZZ_SPLIT(name, data, size) \
    __attribute__((cleanup(fuzz_lines_drop))) fuzz_lines name = fuzz_split((data), (size))

/* Line i, or "" beyond the last. */
static inline const char *fuzz_line(const fuzz_lines *lines, int i)
{
    return i < lines->n ? lines->line[i] : "";
}

/* A refusal has its code and says something, within its room. */
static inline void fuzz_refused(const cb_error *e, cb_code code)
{
    FUZZ_CHECK(e->code == code, "code %d (%s)", (int)e->code, e->message);
    FUZZ_CHECK(memchr(e->message, '\0', sizeof e->message) && e->message[0], "no message");
    FUZZ_CHECK(memchr(e->hint, '\0', sizeof e->hint), "the hint does not end");
}

#endif
