/* What the configuration says to this set: database-url, require-key and simulation are its own,
 * the rest is the gateway's. */
#include "payment_settings.h"

#include <stdlib.h>
#include <string.h>

payments_settings settings;

static bool take_url(const char *url, cb_error *e)
{
    free(settings.database_url);
    settings.database_url = strdup(url);
    return settings.database_url || cb_fail(e, CB_MEMORY, "out of memory");
}

static bool take_flag(const cb_setting *setting, bool *ret, cb_error *e)
{
    *ret = strcmp(setting->value, "true") == 0;
    return *ret || strcmp(setting->value, "false") == 0 ||
           cb_fail(e, CB_MISUSE, "handlers.payments.%s must be true or false", setting->name);
}

/* `rest` has room for all of them. */
static bool take_own(const cb_module_config *config, cb_setting *rest, size_t *n, cb_error *e)
{
    if (config->database_url && !take_url(config->database_url, e))
        return false;
    for (size_t i = 0; i < config->n_settings; i++) {
        const cb_setting *s = &config->settings[i];
        bool taken = true;
        if (strcmp(s->name, "database-url") == 0)
            taken = take_url(s->value, e);
        else if (strcmp(s->name, "require-key") == 0)
            taken = take_flag(s, &settings.requires_key, e);
        else if (strcmp(s->name, "simulation") == 0)
            taken = take_flag(s, &settings.simulation, e);
        else
            rest[(*n)++] = *s;
        if (!taken)
            return false;
    }
    return true;
}

bool settings_configure(const cb_module_config *config, cb_error *e)
{
    cb_setting *rest = calloc(config->n_settings + 1, sizeof *rest);
    cb_module_config gateway = { .settings = rest };

    if (!rest)
        return cb_fail(e, CB_MEMORY, "out of memory");
    bool taken = take_own(config, rest, &gateway.n_settings, e) &&
                 http_client_configure("payments", &gateway, &settings.gateway, e);
    free(rest);
    if (!taken)
        settings_close(); /* nobody closes a set that did not start */
    return taken;
}

void settings_close(void)
{
    http_client_free(settings.gateway);
    free(settings.database_url);
    settings = (payments_settings){ 0 };
}
