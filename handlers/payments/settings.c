/* What the configuration says to this set. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

payments_settings settings;

static const struct {
    const char *name;
    char **value;
} keys[] = {
    { "database-url", &settings.database_url },
    { "gateway-url", &settings.gateway_url },
};

static bool take(char **to, const char *value, cb_error *e)
{
    free(*to);
    *to = strdup(value);
    return *to || cb_fail(e, CB_MEMORY, "out of memory");
}

static bool take_setting(const cb_setting *setting, cb_error *e)
{
    for (size_t i = 0; i < CB_COUNT(keys); i++) {
        if (strcmp(keys[i].name, setting->name) == 0)
            return take(keys[i].value, setting->value, e);
    }
    return cb_fail(e, CB_MISUSE,
                   "handlers.payments.%.60s is no setting: there are gateway-url and database-url",
                   setting->name);
}

static bool take_all(const cb_module_config *config, cb_error *e)
{
    if (!take(&settings.gateway_url, "http://127.0.0.1:8080", e) ||
        (config->database_url && !take(&settings.database_url, config->database_url, e)))
        return false;
    for (size_t i = 0; i < config->n_settings; i++) {
        if (!take_setting(&config->settings[i], e))
            return false;
    }
    if (strncmp(settings.gateway_url, "http://", 7) != 0 &&
        strncmp(settings.gateway_url, "https://", 8) != 0)
        return cb_fail(e, CB_MISUSE,
                       "handlers.payments.gateway-url must begin with http:// or https://");
    return true;
}

bool settings_configure(const cb_module_config *config, cb_error *e)
{
    bool taken = take_all(config, e);

    if (!taken)
        settings_close(); /* nobody closes a set that did not start */
    return taken;
}

void settings_close(void)
{
    for (size_t i = 0; i < CB_COUNT(keys); i++) {
        free(*keys[i].value);
        *keys[i].value = NULL;
    }
}
