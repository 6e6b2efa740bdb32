/* Reading and comparing the token. */
#include "http_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char blanks[] = " \t\r\n";

/* A header must hold it: visible ASCII in one piece. */
static bool is_token(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return *text != '\0';
}

bool http_token_read(const char *file, char **ret, cb_error *e)
{
    char text[1026];
    FILE *in = fopen(file, "re");
    size_t n = in ? fread(text, 1, sizeof text - 1, in) : 0;
    bool failed = !in || ferror(in);
    int reason = errno;

    if (in)
        fclose(in);
    if (failed) {
        cb_fail(e, CB_MISUSE, "cannot read http.token-file '%s': %s", file, strerror(reason));
    } else {
        text[n] = '\0';
        char *start = text + strspn(text, blanks);
        size_t end = strlen(start);
        while (end > 0 && strchr(blanks, start[end - 1]))
            start[--end] = '\0';
        if (n < sizeof text - 1 && strlen(text) + (size_t)(start - text) <= n && is_token(start)) {
            *ret = strdup(start);
            return *ret || cb_fail(e, CB_MEMORY, "out of memory");
        }
        cb_fail(e, CB_MISUSE, "http.token-file '%s' holds no token", file);
    }
    snprintf(e->hint, sizeof e->hint,
             "Put one line of 1 to 1024 visible ASCII characters there, readable for the worker.");
    return false;
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
