/* What an SQLSTATE means: the code that callers branch on, and whether it passes. */
#ifndef BASE_SQLSTATE_H
#define BASE_SQLSTATE_H

#include <commandbus/error.h>

/* Raised by hold_fence: an INVALID_OPERATION that is told apart from those of effects. */
#define SQLSTATE_FENCE_LOST "CBFNC"

/* CB_SERVER for what is not in the table, "" and NULL included. */
cb_code sqlstate_code(const char *sqlstate);

/* Is it of this class, its first two characters? */
bool sqlstate_is_class(const char *sqlstate, const char *class);

/* May the same call succeed later? The connection, another transaction, an administrator or the
 * machine was in the way (classes 08, 40, 53, 55, 57, 58), and nothing about the call itself. */
bool sqlstate_passes(const char *sqlstate);

#endif
