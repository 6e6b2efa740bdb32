/* Settings that the code of a handler set overrules: said in the configuration, and of no effect. */
#ifndef APP_OVERRULED_H
#define APP_OVERRULED_H

#include "config.h"

/* Marks them, for --check-config, and warns of each. Looks into the handler sets of the enabled domains without
 * starting them; one that cannot be loaded is left out, for whoever starts it says why. */
void overruled_find(config *c, config_warn_fn *warn, void *arg);

#endif
