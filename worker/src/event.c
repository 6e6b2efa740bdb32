/* The names of levels. */
#include <commandbus/event.h>

const char *cb_level_name(cb_level level)
{
    static const char *const names[] = {
        [CB_LEVEL_DEBUG] = "debug",
        [CB_LEVEL_INFO] = "info",
        [CB_LEVEL_WARN] = "warn",
        [CB_LEVEL_ERROR] = "error",
    };
    size_t i = (size_t)level;

    return i < sizeof names / sizeof *names ? names[i] : "unknown";
}
