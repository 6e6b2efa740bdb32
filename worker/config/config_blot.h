/* URLs and settings for people to see: without what opens the door. */
#ifndef APP_CONFIG_BLOT_H
#define APP_CONFIG_BLOT_H

#include <stdbool.h>

/* A copy whose passwords are ***; rather too much is hidden than too little. The caller frees it; NULL
 * when out of memory. */
char *config_blot(const char *url);

/* Whether a setting of that name is to be hidden as a whole. */
bool config_blots_name(const char *name);

#endif
