/* What a handler's run came to. Not an error: every one of these is a result. */
#ifndef COMMANDBUS_OUTCOME_H
#define COMMANDBUS_OUTCOME_H

#include <commandbus/api.h>

typedef enum {
    CB_SUCCESS = 0,
    CB_TRANSIENT,     /* Try again later, while attempts are left; then the TSQ. */
    CB_PERMANENT,     /* No retry can help: the TSQ. */
    CB_BUSINESS_RULE, /* Declined for a reason of the business: FAILED, no TSQ. */
    CB_INTERRUPTED,   /* Not entered, or given back: run again, the attempt is refunded. */
} cb_outcome;

/* "SUCCESS" and so on; NULL for a value outside the enum. Static storage. */
CB_API const char *cb_outcome_name(cb_outcome outcome);

#endif
