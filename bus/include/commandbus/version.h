/* Which commandbus library is this? */
#ifndef COMMANDBUS_VERSION_H
#define COMMANDBUS_VERSION_H

#include <commandbus/api.h>

/* The library's version, "major.minor.patch". Static storage. */
CB_API const char *cb_version_string(void);

#endif
