/* What names may look like. The database has the same rules (domain_name_problem); refused here, a
 * bad name never reaches it. */
#ifndef BASE_NAME_RULES_H
#define BASE_NAME_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* Characters of names. */
#define NAME_LOWER  "abcdefghijklmnopqrstuvwxyz"
#define NAME_UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_DIGITS "0123456789"

enum {
    NAME_QUEUE_LIMIT = 47,                     /* PGMQ's longest queue name */
    NAME_DOMAIN_LIMIT = NAME_QUEUE_LIMIT - 10, /* what "__commands" leaves of it */
    NAME_SET_LIMIT = 47,
    NAME_TYPE_LIMIT = 100
};

/* Each returns NULL when the name is fine, else what to do: "use a-z first, ..." (static storage).
 * NULL is not a name. */
const char *name_rule_domain(const char *name);
const char *name_rule_queue(const char *name);
/* Of commands, processes and their steps. */
const char *name_rule_type(const char *name);
/* Of handler sets: also a file in the modules folder, and a component of `migrate --set`. */
const char *name_rule_set(const char *name);

/* Whether it begins with one of `first`, goes on with `rest` and has at most `limit` characters. */
bool name_is_made_of(const char *name, const char *first, const char *rest, size_t limit);
bool name_ends_with(const char *name, const char *end);

#endif
