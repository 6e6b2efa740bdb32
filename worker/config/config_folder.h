/* Folders: of this program, of the installation, of the configuration. */
#ifndef APP_CONFIG_FOLDER_H
#define APP_CONFIG_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

bool folder_is_there(const char *path);
/* A path seen from where this program lies ("../lib/x"): an installation may move. */
bool folder_beside(const char *relative, char *out, size_t size);
/* Where handler sets are unless worker.modules-dir says otherwise. */
bool folder_of_modules(char *out, size_t size);
/* Where configuration is unless --config-dir says otherwise. */
bool folder_of_config(char *out, size_t size);

#endif
