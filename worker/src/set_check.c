/* Is this manifest one that a worker can trust? */
#include "set_check.h"

#include <commandbus/version.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "name_rules.h"

/* Of "0.1.2" the part within which sets need no rebuild: "0.1". */
static int compatible_length(const char *version)
{
    const char *last_dot = strrchr(version, '.');

    return last_dot ? (int)(last_dot - version) : (int)strlen(version);
}

static bool check_abi(const cb_module *m, const char *place, cb_error *e)
{
    const char *version = cb_version_string();

    if (m->abi == CB_MODULE_ABI)
        return true;
    return cb_fail(e, CB_MISUSE,
                   "%.300s was built for ABI %" PRIu32
                   ", this worker speaks %u: rebuild it against commandbus %.*s",
                   place, m->abi, CB_MODULE_ABI, compatible_length(version), version);
}

static bool check_name(const cb_module *m, const char *place, const char *name, cb_error *e)
{
    if (name_rule_set(m->name))
        return cb_fail(e, CB_MISUSE, "%.300s calls itself '%.60s'; %s", place,
                       m->name ? m->name : "", name_rule_set(m->name));
    if (name && strcmp(m->name, name) != 0)
        return cb_fail(e, CB_MISUSE,
                       "%.300s calls itself '%s': rename the file to %s.so or say CB_MODULE(%s, …)",
                       place, m->name, m->name, name);
    return true;
}

static bool check_handler(const cb_module *m, size_t i, const char *place, cb_error *e)
{
    const cb_handler *h = &m->handlers[i];

    if (!h->command_type || !h->command_type[0])
        return cb_fail(e, CB_MISUSE, "%.300s: handler %zu of set '%s' has no command type", place,
                       i + 1, m->name);
    if (!h->run)
        return cb_fail(e, CB_MISUSE, "%.300s: command type '%.60s' of set '%s' has no function",
                       place, h->command_type, m->name);
    for (size_t j = 0; j < i; j++) {
        if (strcmp(m->handlers[j].command_type, h->command_type) == 0)
            return cb_fail(e, CB_MISUSE,
                           "%.300s: command type '%.60s' of set '%s' has two handlers, %zu and "
                           "%zu: keep one",
                           place, h->command_type, m->name, j + 1, i + 1);
    }
    return true;
}

/* "/a/{b}/c": no empty part, braces around whole parts only. */
static bool is_path(const char *path)
{
    size_t named = 0;

    if (path[0] != '/')
        return false;
    for (const char *part = path; *part == '/';) {
        size_t length = strcspn(++part, "/");
        bool is_named = length > 2 && part[0] == '{' && part[length - 1] == '}';
        size_t plain = strcspn(part + is_named, "/{}") + 2u * is_named;
        named += is_named;
        if (length == 0 || plain != length || named > CB_ROUTE_PARTS)
            return false;
        part += length;
    }
    return true;
}

static bool is_method(const char *method)
{
    size_t length = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return length > 0 && method[length] == '\0';
}

static bool check_route(const cb_module *m, size_t i, const char *place, cb_error *e)
{
    const cb_route *r = &m->routes[i];

    if (r->method && is_method(r->method) && r->path && is_path(r->path) && r->answer)
        return true;
    return cb_fail(e, CB_MISUSE,
                   "%.300s: route %zu of set '%s', %.10s %.60s, needs a method, a path such as "
                   "/api/things/{id} with at most %d parts in braces, and a function",
                   place, i + 1, m->name, r->method ? r->method : "", r->path ? r->path : "",
                   CB_ROUTE_PARTS);
}

bool set_check(const cb_module *m, const char *place, const char *name, cb_error *e)
{
    if (!check_abi(m, place, e) || !check_name(m, place, name, e))
        return false;
    if ((!m->handlers || m->n_handlers == 0) && (!m->processes || m->n_processes == 0))
        return cb_fail(e, CB_MISUSE,
                       "%.300s: set '%s' has no handlers: say .handlers and .n_handlers in its "
                       "CB_MODULE",
                       place, m->name);
    for (size_t i = 0; i < m->n_handlers; i++) {
        if (!check_handler(m, i, place, e))
            return false;
    }
    for (size_t i = 0; i < m->n_routes; i++) {
        if (!check_route(m, i, place, e))
            return false;
    }
    return true;
}
