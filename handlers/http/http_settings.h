/* handlers.<set>.url and handlers.<set>.ca-file. */
#ifndef HANDLER_HTTP_SETTINGS_H
#define HANDLER_HTTP_SETTINGS_H

#include <commandbus/module.h>

typedef struct {
    char *url;     /* without a slash at its end */
    char *ca_file; /* certificates to trust [the system's] */
} http_settings;

bool http_settings_take(const char *set, const cb_module_config *config, http_settings *ret,
                        cb_error *e) CB_NODISCARD;
void http_settings_done(http_settings *s);

#endif
