/* Rules of values and names, beside those of the bus in name_rules.h. */
#include "keys_rules.h"

#include <string.h>

#include "name_rules.h"

#define LETTERS NAME_LOWER NAME_UPPER
#define ALNUM   NAME_LOWER NAME_UPPER NAME_DIGITS

enum {
    NAME_LIMIT = 100
};

const char *rule_present(const char *text)
{
    return *text ? NULL : "it must not be empty";
}

const char *rule_reply_queue(const char *text)
{
    const char *rule = name_rule_queue(text);

    if (rule)
        return rule;
    return name_ends_with(text, "__commands") ? "replies never go to a __commands queue" : NULL;
}

/* "<set>.<key>". */
const char *rule_set_setting(const char *text)
{
    const char *dot = strchr(text, '.');
    char set[NAME_SET_LIMIT + 1];

    if (!dot || dot - text > NAME_SET_LIMIT)
        return "write handlers.<set>.<key>";
    memcpy(set, text, (size_t)(dot - text));
    set[dot - text] = '\0';
    if (name_rule_set(set))
        return name_rule_set(set);
    return name_is_made_of(dot + 1, NAME_LOWER, NAME_LOWER NAME_DIGITS "-",
                           NAME_LIMIT - NAME_SET_LIMIT)
               ? NULL
               : "use a-z first, then a-z, 0-9 and -, at most 53 characters for a setting";
}

const char *rule_profile_name(const char *text)
{
    return name_is_made_of(text, ALNUM, ALNUM "_-", NAME_LIMIT) ? NULL
                                                                : "use letters, digits, _ and -";
}

const char *rule_item_name(const char *text)
{
    return name_is_made_of(text, LETTERS, ALNUM "_-", NAME_LIMIT)
               ? NULL
               : "use a letter first, then letters, digits, _ and -, at most 100 characters";
}

const char *rule_worker_name(const char *text)
{
    return name_is_made_of(text, ALNUM, ALNUM "_.-", NAME_LIMIT)
               ? NULL
               : "use letters, digits, _ . and -, at most 100 characters";
}
