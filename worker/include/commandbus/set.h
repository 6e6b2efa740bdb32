/* Loading handler sets from files. */
#ifndef COMMANDBUS_SET_H
#define COMMANDBUS_SET_H

#include <commandbus/module.h>
#include <commandbus/owned.h>

/* A loaded module. */
typedef struct cb_set cb_set;

/* Loads <dir>/<name>.so and checks its manifest: there, of this ABI, of that name, each handler
 * with a type and a function, no type twice; then calls its open(). Every refusal names the file
 * and says what to do (CB_MISUSE); a missing file also says which sets the folder has. */
CB_API bool cb_set_load(const char *dir, const char *name, cb_set **ret, cb_error *e) CB_NODISCARD;
/* The same with what the configuration says: given to its configure(), before open(). Settings
 * for a set that takes none are refused. NULL: nothing is said. */
CB_API bool cb_set_load_with(const char *dir, const char *name, const cb_module_config *config,
                             cb_set **ret, cb_error *e) CB_NODISCARD;
/* Only loads it and checks its manifest: neither configure() nor open() is called, so that none
 * of its functions may be. For those who want to know what a set has. */
CB_API bool cb_set_inspect(const char *dir, const char *name, cb_set **ret,
                           cb_error *e) CB_NODISCARD;
/* Borrowed from the set. */
CB_API const cb_module *cb_set_module(const cb_set *set);
CB_API const char *cb_set_file(const cb_set *set);
/* Calls its close(), if it was opened, and unloads it. No worker may use it any more. */
CB_API void cb_set_free(cb_set *set);
DEFINE_OWNED(cb_set, cb_set_free)

#endif
