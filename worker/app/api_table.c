/* Finding the route of a request: the table is short, the loop goes over all of it. */
#include "api_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_respond.h"
#include "fail.h"
#include "http_route.h"
#include "text.h"

struct api_table {
    const cb_route **routes;
    size_t n;
};

/* The length of the part that begins behind a slash. */
static size_t part_length(const char *part)
{
    return strcspn(part, "/");
}

/* Takes what stands for a {…}. */
static bool take_part(const char *part, size_t length, api_parts *parts)
{
    if (length == 0 || length > CB_ROUTE_PART_LENGTH || parts->n == CB_ROUTE_PARTS)
        return false;
    memcpy(parts->text[parts->n], part, length);
    parts->text[parts->n++][length] = '\0';
    return true;
}

static bool matches(const char *pattern, const char *path, api_parts *parts)
{
    parts->n = 0;
    while (*pattern == '/' && *path == '/') {
        size_t wanted = part_length(++pattern), found = part_length(++path);
        bool fits = *pattern == '{' ? take_part(path, found, parts)
                                    : wanted == found && strncmp(pattern, path, found) == 0;
        if (!fits)
            return false;
        pattern += wanted;
        path += found;
    }
    return !*pattern && !*path;
}

/* Whether one path can be both: part by part the same, or one of the two takes anything. */
static bool overlaps(const char *a, const char *b)
{
    while (*a == '/' && *b == '/') {
        size_t n = part_length(++a), m = part_length(++b);
        if (*a != '{' && *b != '{' && (n != m || strncmp(a, b, n) != 0))
            return false;
        a += n;
        b += m;
    }
    return !*a && !*b;
}

/* What the worker itself answers beside the routes of sets. */
static const cb_module own = { .name = "worker", .routes = &api_respond_route, .n_routes = 1 };

static bool add(api_table *table, const cb_module *module, const cb_route *route, cb_error *e)
{
    if (http_route_find(route->path))
        return fail_misuse(e, "Give it another path.",
                           "set '%s' has a route %s, where the worker answers", module->name,
                           route->path);
    for (size_t i = 0; i < table->n; i++) {
        const cb_route *other = table->routes[i];
        if (strcmp(other->method, route->method) == 0 && overlaps(other->path, route->path))
            return fail_misuse(e, "Give one of them another path, or load one of the sets only.",
                               "two routes for %s %.100s (set '%s') and %.100s", route->method,
                               route->path, module->name, other->path);
    }
    table->routes[table->n++] = route;
    return true;
}

bool api_table_open(const cb_module *const *modules, size_t n, api_table **ret, cb_error *e)
{
    OWNED(api_table) table = calloc(1, sizeof *table);
    size_t most = own.n_routes;

    for (size_t i = 0; i < n; i++)
        most += modules[i]->n_routes;
    if (!table || !(table->routes = calloc(most, sizeof *table->routes)))
        return fail_memory(e);
    for (size_t i = 0; i < own.n_routes; i++) {
        if (!add(table, &own, &own.routes[i], e))
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < modules[i]->n_routes; k++) {
            if (!add(table, modules[i], &modules[i]->routes[k], e))
                return false;
        }
    }
    *ret = api_table_take(&table);
    return true;
}

void api_table_free(api_table *table)
{
    if (!table)
        return;
    free(table->routes);
    free(table);
}

bool api_table_needs_token(const cb_route *route)
{
    return route == &api_respond_route;
}

const cb_route *api_table_find(const api_table *table, const char *method, const char *path,
                               api_parts *parts, char *allowed, size_t size)
{
    allowed[0] = '\0';
    for (size_t i = 0; i < table->n; i++) {
        const cb_route *route = table->routes[i];
        if (!matches(route->path, path, parts))
            continue;
        if (strcmp(route->method, method) == 0)
            return route;
        text_append(allowed, size, "%s%s", *allowed ? ", " : "", route->method);
    }
    return NULL;
}
