/* What the configuration says to this set: handlers.payments.<key>. Written once, before anything runs. */
#ifndef PAYMENTS_SETTINGS_H
#define PAYMENTS_SETTINGS_H

#include "http_client.h"

typedef struct {
    char *database_url;   /* the bus's own, by another way: database-url [the worker's] */
    http_client *gateway; /* where payments go: url, ca-file */
} payments_settings;

extern payments_settings settings;

bool settings_configure(const cb_module_config *config, cb_error *e);
void settings_close(void);

#endif
