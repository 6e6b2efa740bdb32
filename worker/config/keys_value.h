/* Values of keys: from text, to JSON and text, freed. An item is the struct that the key's offset is
 * of: the config, a config_domain, a config_step or a config_process. */
#ifndef APP_KEYS_VALUE_H
#define APP_KEYS_VALUE_H

#include <json-c/json.h>

#include "keys.h"

/* Replaces the value, or leaves it and says what it must be: CB_MISUSE, "it must be 1 to 10000".
 * Lists are written "a, b", with or without brackets. */
bool key_parse(const config_key *key, void *item, const char *text, cb_error *e) CB_NODISCARD;
void key_clear(const config_key *key, void *item);

/* The value as a file would say it; NULL when there is none (or no memory). The caller owns it. */
json_object *key_json(const config_key *key, const void *item);

#define SIZE_SIZE 32 /* room for any size below */

/* 1048576, 512KiB, 1MiB, 1GiB. */
bool size_parse(const char *text, int64_t *bytes);
/* In the largest unit that leaves a whole number. Returns out. */
const char *size_write(int64_t bytes, char *out, size_t size);

#endif
