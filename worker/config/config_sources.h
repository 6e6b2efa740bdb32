/* Where configuration comes from, in the order in which it is read. */
#ifndef APP_CONFIG_SOURCES_H
#define APP_CONFIG_SOURCES_H

#include "config_store.h"

/* "unknown key", with the nearest that is known. Always false. */
bool config_unknown(const char *origin, const char *path, const config_section *section,
                    const char *leaf, cb_error *e);

/* One file of settings. *found is false, and nothing else happens, when there is none. */
bool config_read_file_at(config_loader *l, const char *path, bool *found, cb_error *e) CB_NODISCARD;

/* <folder>/commandbus.cfg and the profiles, as the request or the environment name them. */
bool config_read_folder(config_loader *l, const config_request *request, cb_error *e) CB_NODISCARD;

/* COMMANDBUS_* of the environment. */
bool config_read_environment(config_loader *l, char *const *environment, cb_error *e) CB_NODISCARD;
/* One variable, or NULL when it is not there or empty. Borrowed. */
const char *config_variable(char *const *environment, const char *name);

/* "path=value" of --set. */
bool config_read_setting(config_loader *l, const char *setting, cb_error *e) CB_NODISCARD;

/* What follows from the rest, and what does not fit together. */
bool config_check(config_loader *l, cb_error *e) CB_NODISCARD;

#endif
