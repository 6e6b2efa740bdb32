/* Loading: defaults, files, environment, --set, then what follows from them. */
#include "config.h"

#include "config_sources.h"

bool config_load(const config_request *request, config_warn_fn *warn, void *arg, config **ret,
                 cb_error *e)
{
    OWNED(config) c = NULL;

    if (!config_new(&c, e))
        return false;
    config_loader loader = { .config = c, .warn = warn, .warn_arg = arg };
    if (!config_read_folder(&loader, request, e) ||
        !config_read_environment(&loader, request->environment, e))
        return false;
    for (size_t i = 0; i < request->n_settings; i++) {
        if (!config_read_setting(&loader, request->settings[i], e))
            return false;
    }
    if (!config_check(&loader, e))
        return false;
    *ret = config_take(&c);
    return true;
}
