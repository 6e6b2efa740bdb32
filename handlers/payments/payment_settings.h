/* What the configuration says to this set: handlers.payments.<key>. Written once, before anything
 * runs. */
#ifndef PAYMENTS_SETTINGS_H
#define PAYMENTS_SETTINGS_H

#include "http_client.h"

typedef struct {
    char *database_url; /* the bus's own, by another way: database-url [the worker's] */
    bool requires_key;  /* of each request that pays: require-key [false] */
    bool simulation; /* the world is simulated, and may be told how to behave: simulation [false] */
    http_client *gateway; /* where payments go: url, ca-file */
} payments_settings;

extern payments_settings settings;

bool settings_configure(const cb_module_config *config, cb_error *e);
void settings_close(void);

#endif
