/* Where values go while they are loaded: items by name, and who said what. */
#ifndef APP_CONFIG_STORE_H
#define APP_CONFIG_STORE_H

#include "keys.h"

/* One value that somebody said. What nobody said has its default. */
typedef struct {
    const config_key *key;
    char *item;   /* "fx" of domains.fx.enabled, or NULL */
    char *origin; /* "config/fx.cfg:12", "COMMANDBUS_HTTP_PORT", "--set" */
    int layer;
    const char *overruled; /* why it has no effect; NULL: it has. Static storage. */
} config_said;

struct config_origins {
    config_said *said;
    size_t n, capacity;
};

typedef struct {
    config *config;
    config_warn_fn *warn; /* or NULL */
    void *warn_arg;
    int layer; /* grows with each file, the environment and each --set; the higher wins */
} config_loader;

/* A config that holds the defaults. */
bool config_new(config **ret, cb_error *e) CB_NODISCARD;

size_t config_count(const config *c, const config_section *section);
/* The i-th item, or the config itself for a section without items. */
void *config_at(const config *c, const config_section *section, size_t i);
/* NULL for the items of sections that have none. */
const char *config_item_name(const config_section *section, const void *item);
/* By its exact name, NULL when there is none. */
void *config_find(const config *c, const config_section *section, const char *name);
/* Finds it, or makes one with the defaults. CB_MISUSE for a name against the rules. */
bool config_need(config *c, const config_section *section, const char *name, void **ret,
                 cb_error *e) CB_NODISCARD;

/* Gives a key its value; every error names the origin and the path. CB_MISUSE also when this
 * layer has said it already. */
bool config_assign(config_loader *l, const config_key *key, const char *item, const char *text,
                   const char *origin, cb_error *e) CB_NODISCARD;
/* Who said it last, or NULL. */
const config_said *config_who(const config *c, const config_key *key, const char *item);
/* The same by the key's pattern. */
const config_said *config_who_said(const config *c, const char *pattern, const char *item);

/* Notes that what was said has no effect; `why` has static storage. False when nobody has said
 * it, or it is noted. */
bool config_overrule(config *c, const char *pattern, const char *item, const char *why);

void config_warn(const config_loader *l, const char *hint, const char *fmt, ...) CB_PRINTF(3, 4);

#endif
