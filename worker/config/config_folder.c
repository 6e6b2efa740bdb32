/* Folders: of this program, of the installation, of the configuration. */
#include "config_folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_sources.h"

#ifndef COMMANDBUS_CONFIG_DIR
#define COMMANDBUS_CONFIG_DIR "../etc/commandbus"
#endif
#ifndef COMMANDBUS_MODULES_DIR
#define COMMANDBUS_MODULES_DIR "../lib/commandbus/handlers"
#endif

bool folder_is_there(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool folder_beside(const char *relative, char *out, size_t size)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    if (length <= 0)
        return false;
    program[length] = '\0';
    for (;;) {
        char *slash = strrchr(program, '/');
        if (!slash)
            return false;
        *slash = '\0';
        if (strncmp(relative, "../", 3) != 0)
            break;
        relative += 3;
    }
    return (size_t)snprintf(out, size, "%s/%s", program, relative) < size;
}

/* The build tree has its libraries in lib, whatever an installation calls that. */
bool folder_of_modules(char *out, size_t size)
{
    static const char in_build_tree[] = "../lib/commandbus/handlers";

    return (folder_beside(COMMANDBUS_MODULES_DIR, out, size) && folder_is_there(out)) ||
           (folder_beside(in_build_tree, out, size) && folder_is_there(out)) ||
           folder_beside(COMMANDBUS_MODULES_DIR, out, size);
}

bool folder_of_config(char *out, size_t size)
{
    return folder_beside(COMMANDBUS_CONFIG_DIR, out, size);
}
