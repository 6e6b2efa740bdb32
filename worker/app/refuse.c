/* Refusing to start. */
#include "refuse.h"

#include <ctype.h>
#include <stdio.h>

/* What is wrong with the settings or the machine; all else is about the database. */
static const cb_code of_configuration[] = {
    CB_MISUSE, CB_MEMORY, CB_DATA, CB_INVALID_NAME, CB_INVALID_DATA, CB_INVALID_OPERATION,
};

/* Messages of libpq have several lines. */
static void one_line(const char *text, char *ret, size_t size)
{
    size_t n = 0;

    for (; *text && n + 1 < size; text++) {
        bool blank = isspace((unsigned char)*text);
        if (!blank)
            ret[n++] = *text;
        else if (n > 0 && ret[n - 1] != ' ')
            ret[n++] = ' ';
    }
    while (n > 0 && ret[n - 1] == ' ')
        n--;
    ret[n] = '\0';
}

ended refuse(const cb_error *e)
{
    char message[sizeof e->message], hint[sizeof e->hint];

    one_line(e->message, message, sizeof message);
    one_line(e->hint, hint, sizeof hint);
    fprintf(stderr, "commandbus-worker: %s\n", message);
    if (*hint)
        fprintf(stderr, "  hint: %s\n", hint);
    for (size_t i = 0; i < sizeof of_configuration / sizeof *of_configuration; i++) {
        if (of_configuration[i] == e->code)
            return ENDED_CONFIGURATION;
    }
    return ENDED_NO_DATABASE;
}
