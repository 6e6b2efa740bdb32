/* Keeping effects: copies, within bounds. */
#include "effects.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* How a statement that stays inside its transaction begins. A COMMIT among the effects would part
 * them from the outcome. */
static const char *const beginnings[] = { "INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH" };

static bool begins_well(const char *sql)
{
    size_t word;

    sql += strspn(sql, " \t\r\n");
    word = strspn(sql, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        if (strlen(beginnings[i]) == word && strncasecmp(beginnings[i], sql, word) == 0)
            return true;
    }
    return false;
}

static const char *problem_with(const effects *to, const char *sql, size_t n,
                                const char *const values[])
{
    if (!sql || (n > 0 && !values))
        return "there is no statement, or no values for it";
    if (!begins_well(sql))
        return "an effect must begin with INSERT, UPDATE, DELETE, MERGE, SELECT or WITH";
    if (n > EFFECT_VALUES_MAX)
        return "more than 32 values in one statement";
    return to->count == EFFECTS_MAX ? "more than 16 statements" : NULL;
}

/* What it takes to keep these strings, each with its NUL. */
static size_t bytes_of(const char *sql, size_t n, const char *const values[])
{
    size_t bytes = strlen(sql) + 1;

    for (size_t i = 0; i < n; i++)
        bytes += values[i] ? strlen(values[i]) + 1 : 0;
    return bytes;
}

static const char *put(char **at, const char *text)
{
    char *copy = *at;
    size_t size = strlen(text) + 1;

    memcpy(copy, text, size);
    *at += size;
    return copy;
}

static effect *copy_of(const char *sql, size_t n, const char *const values[], size_t bytes)
{
    effect *copy = malloc(sizeof *copy + bytes);

    if (!copy)
        return NULL;
    char *at = (char *)(copy + 1);
    copy->sql = put(&at, sql);
    copy->n = n;
    for (size_t i = 0; i < n; i++)
        copy->values[i] = values[i] ? put(&at, values[i]) : NULL;
    return copy;
}

const char *effects_add(effects *to, const char *sql, size_t n, const char *const values[])
{
    const char *problem = problem_with(to, sql, n, values);

    if (problem)
        return problem;
    size_t bytes = bytes_of(sql, n, values);
    if (bytes > EFFECTS_BYTES_MAX - to->bytes)
        return "more than 1 MiB together";
    effect *copy = copy_of(sql, n, values, bytes);
    if (!copy)
        return "out of memory";
    to->list[to->count++] = copy;
    to->bytes += bytes;
    return NULL;
}

void effects_free(effects *of)
{
    if (!of)
        return;
    for (size_t i = 0; i < of->count; i++)
        free(of->list[i]);
    free(of);
}
