/* What names may look like. */
#include "name_rules.h"

#include <string.h>

bool name_is_made_of(const char *name, const char *first, const char *rest, size_t limit)
{
    return name && *name && strchr(first, *name) && name[strspn(name, rest)] == '\0' &&
           strlen(name) <= limit;
}

bool name_ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);

    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static bool is_identifier(const char *name, size_t limit)
{
    return name_is_made_of(name, NAME_LOWER, NAME_LOWER NAME_DIGITS "_", limit);
}

const char *name_rule_domain(const char *name)
{
    if (!is_identifier(name, (size_t)-1))
        return "use a-z first, then a-z, 0-9 and _";
    if (strstr(name, "__") || name_ends_with(name, "_"))
        return "use neither __ nor a _ at the end";
    if (strlen(name) > NAME_DOMAIN_LIMIT)
        return "use at most 37 characters (PGMQ's queue names have 47)";
    return NULL;
}

const char *name_rule_queue(const char *name)
{
    return is_identifier(name, NAME_QUEUE_LIMIT)
               ? NULL
               : "use a-z first, then a-z, 0-9 and _, at most 47 characters";
}

const char *name_rule_type(const char *name)
{
    return name_is_made_of(name, NAME_LOWER NAME_UPPER, NAME_LOWER NAME_UPPER NAME_DIGITS "_.-",
                           NAME_TYPE_LIMIT)
               ? NULL
               : "use a letter first, then letters, digits, _ . and -, at most 100 characters";
}

const char *name_rule_set(const char *name)
{
    return is_identifier(name, NAME_SET_LIMIT)
               ? NULL
               : "use a-z first, then a-z, 0-9 and _, at most 47 characters";
}
