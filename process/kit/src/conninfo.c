/* Connection strings. Built on libpq alone: tests of the bus use it too. */
#include "conninfo.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

/* Appends keyword='value' with the value quoted as libpq wants it. */
static void put_option(FILE *out, const char *keyword, const char *value)
{
    fprintf(out, "%s='", keyword);
    for (const char *c = value; *c; c++) {
        if (*c == '\'' || *c == '\\')
            fputc('\\', out);
        fputc(*c, out);
    }
    fputs("' ", out);
}

char *cb_test_conninfo(const char *url, const char *database)
{
    char *conninfo = NULL;
    size_t size = 0;
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    FILE *out = options ? open_memstream(&conninfo, &size) : NULL;

    if (out) {
        for (PQconninfoOption *o = options; o->keyword; o++) {
            if (o->val && strcmp(o->keyword, "dbname") != 0)
                put_option(out, o->keyword, o->val);
        }
        put_option(out, "dbname", database);
        fclose(out);
    }
    PQconninfoFree(options);
    return conninfo;
}
