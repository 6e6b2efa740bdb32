/* The table of configuration keys. Defaults, ranges, files, environment names, --set, messages,
 * --check-config and the check of config/commandbus.cfg all come from it. */
#ifndef APP_KEYS_H
#define APP_KEYS_H

#include <json-c/json.h>

#include "config.h"

typedef enum {
    KEY_BOOL,      /* bool */
    KEY_INTEGER,   /* int64_t */
    KEY_SIZE,      /* int64_t, bytes */
    KEY_DURATION,  /* double, seconds */
    KEY_DURATIONS, /* double *, seconds, and a count */
    KEY_TEXT,      /* char *, NULL when there is none */
    KEY_NAMES,     /* char **, and a count */
    KEY_CHOICE,    /* an enum: the place in the choices */
    KEY_WORD,      /* char *: one of the choices */
} key_type;

/* NULL when the text is fine, else the rule it breaks: "it must be ...". */
typedef const char *key_rule(const char *text);

typedef struct {
    const char *path; /* "http.port", "domains.<d>.enabled" */
    key_type type;
    size_t offset;              /* of the value, in the config or in its item */
    size_t count;               /* of lists: offset of the number of entries */
    double min, max;            /* seconds of a duration, bytes of a size */
    const char *initial;        /* the default as a file would say it; NULL: none */
    const char *fallback;       /* the key whose value counts where nobody says one; NULL: none */
    const char *without;        /* what no value means, for people */
    const char *const *choices; /* ends with NULL */
    key_rule *rule;             /* of texts and names */
    bool whole_seconds;
    bool bare_seconds; /* a number without unit is seconds */
    bool secret;       /* may hold a password: never shown whole */
    const char *help;  /* the line in config/commandbus.cfg */
} config_key;

/* domains, command-steps and processes hold named items with keys each; the others hold keys. */
typedef struct {
    const char *name;
    size_t item_size; /* 0: no items, the values are in the config itself */
    size_t items;     /* offset of the array; the first member of an item is its char *name */
    size_t count;     /* offset of its length */
    key_rule *name_rule;
    /* Its keys are not ours to know: an item is named "<set>.<key>" and holds one value. */
    bool is_open;
} config_section;

extern const config_key config_keys[];
extern const size_t n_config_keys;
extern const config_section config_sections[];
extern const size_t n_config_sections;

const config_section *section_find(const char *name);
/* The section `name` within this one: worker.defaults within worker. NULL when there is none. */
const config_section *section_within(const config_section *section, const char *name);
const config_section *key_section(const config_key *key);
/* By its path as the table has it. */
const config_key *key_named(const char *path);
/* "enabled" of "domains.<d>.enabled". */
const char *key_leaf(const config_key *key);
/* NULL when the section has no such key. */
const config_key *key_find(const config_section *section, const char *leaf);
/* "domains.fx.enabled"; the pattern itself when item is NULL. Returns out. */
const char *key_path(const config_key *key, const char *item, char *out, size_t size);

/* The longest path: a section, a name and a leaf. */
#define KEY_PATH_SIZE 192

/* ---- values: an item is the struct that the key's offset is of, the config or one of its items
 * ---- */

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

/* A key_rule, of the names of profiles. */
const char *rule_profile_name(const char *text);

#endif
