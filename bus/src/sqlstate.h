/* From an SQLSTATE to the code that callers branch on. */
#ifndef CB_SQLSTATE_H
#define CB_SQLSTATE_H

#include <commandbus/error.h>

/* Raised by hold_fence: an INVALID_OPERATION that is told apart from those of effects. */
#define SQLSTATE_FENCE_LOST "CBFNC"

/* CB_SERVER for what is not in the table, "" and NULL included. */
cb_code sqlstate_code(const char *sqlstate);

#endif
