/* Files of JSON lines. */
#include "jsonl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

#define LARGEST_ARGUMENT ((size_t)64 << 20)

struct jsonl {
    FILE *in;
    const char *name;
    size_t number;
};

static bool open_input(const char *path, FILE **ret, cb_error *e)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!in)
        return cb_fail(e, CB_INVALID_DATA, "cannot open %s: %s", path, strerror(errno));
    *ret = in;
    return true;
}

bool jsonl_open(const char *path, jsonl **ret, cb_error *e)
{
    OWNED(jsonl) file = calloc(1, sizeof *file);
    if (!file)
        return fail_memory(e);
    file->name = strcmp(path, "-") == 0 ? "stdin" : path;
    if (!open_input(path, &file->in, e))
        return false;
    *ret = jsonl_take(&file);
    return true;
}

void jsonl_free(jsonl *file)
{
    if (!file)
        return;
    if (file->in && file->in != stdin)
        fclose(file->in);
    free(file);
}

/* Bytes up to `stop` (EOF for all), at most `most`. *ended tells whether there was nothing left. */
static bool read_up_to(FILE *in, int stop, size_t most, char **ret, size_t *length, bool *ended,
                       cb_error *e)
{
    char *text = NULL;
    size_t used = 0, size = 0;
    int c;

    while ((c = getc_unlocked(in)) != EOF && c != stop) {
        if (used + 2 > size) {
            char *larger = realloc(text, size = size ? size * 2 : 256);
            if (!larger) {
                free(text);
                return fail_memory(e);
            }
            text = larger;
        }
        text[used++] = (char)c;
        if (used > most || c == '\0') {
            free(text);
            return c ? cb_fail(e, CB_PAYLOAD_TOO_LARGE, "longer than %zu bytes", most)
                     : cb_fail(e, CB_INVALID_DATA, "there is a NUL byte in it");
        }
    }
    if (ferror(in)) {
        free(text);
        return cb_fail(e, CB_INVALID_DATA, "cannot be read: %s", strerror(errno));
    }
    *ended = c == EOF && used == 0;
    if (!text && !(text = malloc(1)))
        return fail_memory(e);
    text[used] = '\0';
    *length = used;
    *ret = text;
    return true;
}

bool jsonl_next(jsonl *file, char **line, size_t *length, size_t *number, cb_error *e)
{
    for (;;) {
        bool ended = false;
        char *text = NULL;

        if (!read_up_to(file->in, '\n', JSONL_LONGEST, &text, length, &ended, e))
            return cb_fail_while(e, "reading line %zu of %s", file->number + 1, file->name);
        file->number++;
        if (!ended && text[strspn(text, " \t\r")] == '\0') {
            free(text);
            continue;
        }
        if (ended) {
            free(text);
            text = NULL;
        } else if (text[*length - 1] == '\r') {
            text[--*length] = '\0';
        }
        *line = text;
        *number = file->number;
        return true;
    }
}

bool read_text_file(const char *path, size_t most, char **ret, cb_error *e)
{
    FILE *in = NULL;
    size_t length = 0;
    bool ended = false;

    if (!open_input(path, &in, e))
        return false;
    bool good = read_up_to(in, EOF, most, ret, &length, &ended, e);
    if (in != stdin)
        fclose(in);
    return good || cb_fail_while(e, "reading %s", path);
}

bool read_text_argument(const char *text, const char **ret, char **owned, cb_error *e)
{
    *ret = text;
    if (!text || (*text != '@' && strcmp(text, "-") != 0))
        return true;
    if (!read_text_file(*text == '@' ? text + 1 : text, LARGEST_ARGUMENT, owned, e))
        return false;
    *ret = *owned;
    return true;
}
