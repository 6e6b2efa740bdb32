/* Rules of names, as the bus has them: refused here, a bad name never reaches the database. */
#include "keys_rules.h"

#include <stdbool.h>
#include <string.h>

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* PGMQ's longest queue name, and what is left of it for a domain. */
#define QUEUE_LIMIT  47
#define DOMAIN_LIMIT (QUEUE_LIMIT - (sizeof "__commands" - 1))
#define SET_LIMIT    47
#define NAME_LIMIT   100

static bool is_made_of(const char *text, const char *first, const char *rest, size_t limit)
{
    return *text && strchr(first, *text) && text[strspn(text, rest)] == '\0' &&
           strlen(text) <= limit;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

const char *rule_present(const char *text)
{
    return *text ? NULL : "it must not be empty";
}

const char *rule_domain(const char *text)
{
    if (!is_made_of(text, LOWER, LOWER DIGITS "_", strlen(text)))
        return "a domain is a-z first, then a-z, 0-9 and _";
    if (strstr(text, "__") || ends_with(text, "_"))
        return "a domain may not contain __ nor end in _";
    if (strlen(text) > DOMAIN_LIMIT)
        return "a domain has 37 characters at most (PGMQ's queue names have 47)";
    return NULL;
}

const char *rule_command_type(const char *text)
{
    return is_made_of(text, LOWER UPPER, LOWER UPPER DIGITS "_.-", NAME_LIMIT)
               ? NULL
               : "a command type is a letter first, then letters, digits, _ . and -, 100 at most";
}

const char *rule_reply_queue(const char *text)
{
    if (!is_made_of(text, LOWER, LOWER DIGITS "_", QUEUE_LIMIT))
        return "a queue is a-z first, then a-z, 0-9 and _, 47 characters at most";
    return ends_with(text, "__commands") ? "replies never go to a __commands queue" : NULL;
}

/* As cb_set_load has it: a set is loaded by its name from the modules folder, and must not lead out of it. */
const char *rule_set_name(const char *text)
{
    return is_made_of(text, LOWER, LOWER DIGITS "_", SET_LIMIT)
               ? NULL
               : "a handler set is named by a-z first, then a-z, 0-9 and _, 47 characters at most";
}

/* "<set>.<key>". */
const char *rule_set_setting(const char *text)
{
    const char *dot = strchr(text, '.');
    char set[SET_LIMIT + 1];

    if (!dot || dot - text > SET_LIMIT)
        return "write handlers.<set>.<key>";
    memcpy(set, text, (size_t)(dot - text));
    set[dot - text] = '\0';
    if (rule_set_name(set))
        return rule_set_name(set);
    return is_made_of(dot + 1, LOWER, LOWER DIGITS "-", NAME_LIMIT - SET_LIMIT)
               ? NULL
               : "a setting is named by a-z first, then a-z, 0-9 and -, 53 characters at most";
}

const char *rule_profile_name(const char *text)
{
    return is_made_of(text, LOWER UPPER DIGITS, LOWER UPPER DIGITS "_-", NAME_LIMIT)
               ? NULL
               : "a profile is named by letters, digits, _ and -";
}

const char *rule_item_name(const char *text)
{
    return is_made_of(text, LOWER UPPER, LOWER UPPER DIGITS "_-", NAME_LIMIT)
               ? NULL
               : "a name is a letter first, then letters, digits, _ and -, 100 at most";
}

const char *rule_worker_name(const char *text)
{
    return is_made_of(text, LOWER UPPER DIGITS, LOWER UPPER DIGITS "_.-", NAME_LIMIT)
               ? NULL
               : "a worker is named by letters, digits, _ . and -, 100 at most";
}
