/* The library's version, as the build knows it. */
#include <commandbus/version.h>

const char *cb_version_string(void)
{
    return COMMANDBUS_VERSION;
}
