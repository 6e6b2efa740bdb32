/* The routes of the loaded sets, and of the worker itself: which one a request is for. Immutable once it is there. */
#ifndef APP_API_TABLE_H
#define APP_API_TABLE_H

#include <commandbus/module.h>
#include <commandbus/owned.h>

typedef struct api_table api_table;

/* What a path gave for the {…} of its route. */
typedef struct {
    char text[CB_ROUTE_PARTS][CB_ROUTE_PART_LENGTH + 1];
    size_t n;
} api_parts;

/* Borrows the modules, which must outlive it. CB_MISUSE when two routes would answer the same requests, or one would
 * never be asked because the worker itself answers there. */
bool api_table_open(const cb_module *const *modules, size_t n, api_table **ret,
                    cb_error *e) CB_NODISCARD;
void api_table_free(api_table *table);
DEFINE_OWNED(api_table, api_table_free)

/* NULL when there is no such path or, if `allowed` is not empty afterwards, no such method: it then holds those
 * that there are, "GET, POST". A path is matched as it came, decoded. */
const cb_route *api_table_find(const api_table *table, const char *method, const char *path,
                               api_parts *parts, char *allowed, size_t size);

/* Whether it is there only for callers with a token: where the configuration has none, for nobody. */
bool api_table_needs_token(const cb_route *route);

#endif
