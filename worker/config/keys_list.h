/* Values that are lists: durations and names. */
#ifndef APP_KEYS_LIST_H
#define APP_KEYS_LIST_H

#include <json-c/json.h>

#include "keys.h"

/* One duration in the range of its key. */
bool list_parse_seconds(const config_key *key, const char *text, double *seconds,
                        cb_error *e) CB_NODISCARD;
json_object *list_seconds_json(double seconds);

bool list_parse_durations(const config_key *key, void *item, const char *text,
                          cb_error *e) CB_NODISCARD;
json_object *list_durations_json(const config_key *key, const void *item);
void list_clear_durations(const config_key *key, void *item);

bool list_parse_names(const config_key *key, void *item, const char *text,
                      cb_error *e) CB_NODISCARD;
json_object *list_names_json(const config_key *key, const void *item);
void list_clear_names(const config_key *key, void *item);

#endif
