/* What the configuration says to this set: handlers.reporting.<key>. Written once, before any
 * handler runs. */
#ifndef REPORTING_SETTINGS_H
#define REPORTING_SETTINGS_H

#include <commandbus/module.h>

typedef struct {
    char *output_folder; /* where every file goes; the same folder for all instances */
    char *database_url;  /* of the tables [the worker's] */
} reporting_settings;

extern reporting_settings settings;

bool settings_configure(const cb_module_config *config, cb_error *e);
/* Whether files can be written there. */
bool settings_open(cb_error *e);
void settings_close(void);

#endif
