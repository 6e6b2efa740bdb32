/* What the configuration says to this set: handlers.payments.<key>. Written once, before anything runs. */
#ifndef PAYMENTS_SETTINGS_H
#define PAYMENTS_SETTINGS_H

#include <commandbus/module.h>

typedef struct {
    char *database_url; /* of the tables [the worker's] */
    char *gateway_url;  /* where payments go [http://127.0.0.1:8080] */
} payments_settings;

extern payments_settings settings;

bool settings_configure(const cb_module_config *config, cb_error *e);
void settings_close(void);

#endif
