/* Database URLs for people to see: without what opens the door. */
#ifndef APP_CONFIG_BLOT_H
#define APP_CONFIG_BLOT_H

/* A copy whose passwords are ***; rather too much is hidden than too little. The caller frees it; NULL
 * when out of memory. */
char *config_blot(const char *url);

#endif
