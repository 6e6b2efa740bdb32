/* Rules of values and names, beside those of the bus in name_rules.h. Each is a key_rule: NULL, or what
 * to do. */
#ifndef APP_KEYS_RULES_H
#define APP_KEYS_RULES_H

const char *rule_present(const char *text);
const char *rule_reply_queue(const char *text);
const char *rule_set_setting(const char *text);
const char *rule_profile_name(const char *text);
const char *rule_item_name(const char *text);
const char *rule_worker_name(const char *text);

#endif
