/* Rules of names, as the bus has them. Each is a key_rule: NULL, or what the text must be. */
#ifndef APP_KEYS_RULES_H
#define APP_KEYS_RULES_H

const char *rule_present(const char *text);
const char *rule_domain(const char *text);
const char *rule_command_type(const char *text);
const char *rule_reply_queue(const char *text);
const char *rule_set_name(const char *text);
const char *rule_set_setting(const char *text);
const char *rule_profile_name(const char *text);
const char *rule_item_name(const char *text);
const char *rule_worker_name(const char *text);

#endif
