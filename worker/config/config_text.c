/* The text of a file, before libconfig sees it. */
#include "config_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*"
#define DIGITS          "0123456789"
#define HEX_DIGITS      "0123456789abcdefABCDEF"

static void close_file(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* Reads until the end or until the buffer is full. */
static ssize_t read_all(int fd, char *buffer, size_t size)
{
    size_t length = 0;

    while (length < size) {
        ssize_t n = read(fd, buffer + length, size - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -1 : (ssize_t)length;
        length += (size_t)n;
    }
    return (ssize_t)length;
}

bool text_read(const char *path, size_t limit, char **ret, cb_error *e)
{
    /* Not blocking, so that a pipe in the place of a file is refused and not waited for. */
    __attribute__((cleanup(close_file))) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    *ret = NULL;
    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0 || fstat(fd, &status) < 0)
        return cb_fail(e, CB_MISUSE, "%.300s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return cb_fail(e, CB_MISUSE, "%.300s: not a file", path);
    char *text = malloc(limit + 2);
    if (!text)
        return fail_memory(e);

    ssize_t length = read_all(fd, text, limit + 1);
    bool good = true;
    if (length < 0)
        good = cb_fail(e, CB_MISUSE, "%.300s: cannot be read: %s", path, strerror(errno));
    else if ((size_t)length > limit)
        good = cb_fail(e, CB_MISUSE, "%.300s: is longer than %zu KiB", path, limit / 1024);
    else if (memchr(text, '\0', (size_t)length))
        good = cb_fail(e, CB_MISUSE, "%.300s: not a text file: it holds a NUL byte", path);
    if (!good) {
        free(text);
        return false;
    }
    text[length] = '\0';
    *ret = text;
    return true;
}

/* The end of the text in quotes that begins here, NULL when it has none. */
static const char *skip_quoted(const char *at)
{
    for (at++; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
    }
    return *at ? at + 1 : NULL;
}

/* The end of the comment that begins here, or here when none does. */
static const char *skip_comment(const char *at)
{
    if (*at == '#' || strncmp(at, "//", 2) == 0)
        return at + strcspn(at, "\n");
    if (strncmp(at, "/*", 2) == 0) {
        const char *end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    return at;
}

/* How long the number is that begins here; *fits tells whether libconfig's integer holds it. */
static size_t take_number(const char *at, bool *fits)
{
    bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    size_t length = hex ? 2 + strspn(at + 2, HEX_DIGITS) : strspn(at, DIGITS);
    bool is_long = at[length] == 'L';

    errno = 0;
    unsigned long long value = strtoull(at, NULL, hex ? 16 : 10);
    *fits = errno == 0 && value <= (is_long ? LLONG_MAX : INT_MAX);
    if (!hex && at[length] && strchr(".eE", at[length])) {
        *fits = true;
        length += strspn(at + length, DIGITS ".eE+-");
    }
    return length + strspn(at + length, "L");
}

/* Where the next word begins, or NULL and the error when this one is not for libconfig. */
static const char *skip_word(const char *path, unsigned line, const char *at, cb_error *e)
{
    const char *end = *at == '"' ? skip_quoted(at) : skip_comment(at);
    bool fits = true;

    if (!end)
        cb_fail(e, CB_MISUSE, "%.300s:%u: the text that begins here has no closing quote", path,
                line);
    if (end != at)
        return end;
    end += strchr(DIGITS, *at) ? take_number(at, &fits) : strspn(at, NAME_CHARACTERS);
    if (!fits) {
        cb_fail(e, CB_MISUSE, "%.300s:%u: %.*s is too large a number", path, line,
                (int)(end - at > 40 ? 40 : end - at), at);
        return NULL;
    }
    if (*at == '@') {
        cb_fail(e, CB_MISUSE, "%.300s:%u: @include is not for these files: use profiles", path,
                line);
        return NULL;
    }
    return end == at ? at + 1 : end;
}

bool text_check(const char *path, const char *text, cb_error *e)
{
    unsigned line = 1;

    for (const char *at = text; *at;) {
        const char *end = skip_word(path, line, at, e);
        if (!end)
            return false;
        for (; at < end; at++)
            line += *at == '\n';
    }
    return true;
}
