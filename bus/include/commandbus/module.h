/* The manifest of a handler set: what a loadable module says about itself.
 *
 *     static const cb_handler handlers[] = {
 *         { "BookFx", fx_book },
 *         { "ReleaseFx", fx_release },
 *     };
 *     CB_MODULE(fx, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
 */
#ifndef COMMANDBUS_MODULE_H
#define COMMANDBUS_MODULE_H

#include <commandbus/context.h>
#include <commandbus/error.h>
#include <commandbus/route.h>
#include <stdint.h>

/* Grows when a manifest or a context of one version would be misread by another. */
#define CB_MODULE_ABI 6u

struct cb_process_type; /* commandbus/process.h */

/* handlers.<set>.<name> = "<value>" of the configuration. */
typedef struct {
    const char *name, *value;
} cb_setting;

/* What a set is told before it starts. Borrowed for the call. */
typedef struct {
    const char *database_url; /* the worker's, for sets that read tables; may hold a password */
    const cb_setting *settings;
    size_t n_settings;
} cb_module_config;

/* What is left out is 0: a set needs no more than handlers. */
typedef struct {
    uint32_t abi;     /* CB_MODULE_ABI of the headers it was built with; always first */
    const char *name; /* the set's, equal to the file's: fx.so holds "fx" */
    const cb_handler *handlers;
    size_t n_handlers;
    const struct cb_process_type *const *processes; /* process types, beside the handlers */
    size_t n_processes;
    const cb_route *routes; /* HTTP, under features.http-api */
    size_t n_routes;
    /* Called once after loading, before open(): takes the settings, and refuses with false the
     * ones it does not know. Without it a set takes none. May be NULL. */
    bool (*configure)(const cb_module_config *config, cb_error *e);
    /* Called once after loading and before any handler; false refuses the start. May be NULL. */
    bool (*open)(cb_error *e);
    /* Called once when no handler runs any more, unless configure() or open() refused. May be
     * NULL. */
    void (*close)(void);
} cb_module;

#define CB_MODULE_SYMBOL "cb_module_manifest"

/* Defines the manifest of the set called `set`. Once per module. */
#define CB_MODULE(set, ...)                         \
    CB_API_DATA const cb_module cb_module_manifest; \
    const cb_module cb_module_manifest = { .abi = CB_MODULE_ABI, .name = #set, __VA_ARGS__ }

#endif
