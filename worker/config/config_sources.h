/* Where configuration comes from: what config.c calls in the order in which it is read. */
#ifndef APP_CONFIG_SOURCES_H
#define APP_CONFIG_SOURCES_H

#include "config_store.h"

/* "unknown key", with the nearest that is known. Always false. */
bool config_unknown(const char *origin, const char *path, const config_section *section,
                    const char *leaf, cb_error *e);

/* The whole file; *ret is NULL and the result true when there is none. The caller frees it.
 * CB_MISUSE for what is no file, cannot be read, is longer than limit bytes or holds a NUL. */
bool config_read_text(const char *path, size_t limit, char **ret, cb_error *e) CB_NODISCARD;

/* One file of settings. *found is false, and nothing else happens, when there is none. */
bool config_read_file_at(config_loader *l, const char *path, bool *found, cb_error *e) CB_NODISCARD;

/* COMMANDBUS_* of the environment. */
bool config_read_environment(config_loader *l, char *const *environment, cb_error *e) CB_NODISCARD;

/* What follows from the rest, and what does not fit together. */
bool config_check(config_loader *l, cb_error *e) CB_NODISCARD;
/* Where handler sets are unless worker.modules-dir says otherwise. */
bool config_modules_folder(char *out, size_t size);

#endif
