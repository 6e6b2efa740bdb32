/* What the configuration says to this set. */
#include "report_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

reporting_settings settings;

static const struct {
    const char *name;
    char **value;
} keys[] = {
    { "output-folder", &settings.output_folder },
    { "database-url", &settings.database_url },
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
                   "unknown setting handlers.reporting.%.60s: there are output-folder and "
                   "database-url",
                   setting->name);
}

static bool take_all(const cb_module_config *config, cb_error *e)
{
    if (config->database_url && !take(&settings.database_url, config->database_url, e))
        return false;
    for (size_t i = 0; i < config->n_settings; i++) {
        if (!take_setting(&config->settings[i], e))
            return false;
    }
    if (!settings.output_folder || settings.output_folder[0] != '/')
        return cb_fail(e, CB_MISUSE,
                       "say where statements go: handlers.reporting.output-folder, an absolute "
                       "path to a folder that all instances share");
    return true;
}

bool settings_configure(const cb_module_config *config, cb_error *e)
{
    bool taken = take_all(config, e);

    if (!taken)
        settings_close(); /* nobody closes a set that did not start */
    return taken;
}

static bool check_folder(cb_error *e)
{
    struct stat status;

    if (stat(settings.output_folder, &status) != 0 ||
        access(settings.output_folder, W_OK | X_OK) != 0)
        return cb_fail(e, CB_MISUSE, "handlers.reporting.output-folder, %.150s: %s",
                       settings.output_folder, strerror(errno));
    return S_ISDIR(status.st_mode) || cb_fail(e, CB_MISUSE,
                                              "handlers.reporting.output-folder, %.150s, is no "
                                              "folder",
                                              settings.output_folder);
}

bool settings_open(cb_error *e)
{
    bool usable = check_folder(e);

    if (!usable)
        settings_close();
    return usable;
}

void settings_close(void)
{
    for (size_t i = 0; i < CB_COUNT(keys); i++) {
        free(*keys[i].value);
        *keys[i].value = NULL;
    }
}
