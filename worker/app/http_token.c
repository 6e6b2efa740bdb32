/* Reading and comparing the token. */
#include "http_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fail.h"

static const char blanks[] = " \t\r\n";

static const char advice[] =
    "Put one line of 1 to 1024 visible ASCII characters there, readable for the worker.";

/* A header must hold it: visible ASCII in one piece. */
static bool is_token(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return *text != '\0';
}

/* Reads up to `size` bytes. */
static bool read_file(const char *file, char *text, size_t size, size_t *ret)
{
    FILE *in = fopen(file, "re");

    if (!in)
        return false;
    *ret = fread(text, 1, size, in);
    bool fine = !ferror(in);
    int reason = errno;
    fclose(in);
    errno = reason;
    return fine;
}

bool http_token_read(const char *key, const char *file, char **ret, cb_error *e)
{
    char text[1030];
    size_t n = 0;

    if (!read_file(file, text, sizeof text - 1, &n))
        return fail_misuse(e, advice, "cannot read %s '%s': %s", key, file, strerror(errno));
    while (n > 0 && strchr(blanks, text[n - 1]))
        n--;
    text[n] = '\0';
    const char *token = text + strspn(text, blanks);
    if (n > 1024 || strlen(text) != n || !is_token(token))
        return fail_misuse(e, advice, "%s '%s' holds no token", key, file);
    *ret = strdup(token);
    return *ret || fail_memory(e);
}

bool http_token_matches(const char *token, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    size_t n = strlen(token);

    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return false;
    const char *given = authorization + sizeof scheme - 1;
    size_t m = strlen(given);
    volatile unsigned char difference = n != m;
    for (size_t i = 0; i < m; i++)
        difference |= (unsigned char)(given[i] ^ token[i % n]);
    return difference == 0;
}
