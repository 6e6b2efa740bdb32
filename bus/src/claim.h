/* Claims as receive.sql gives them. */
#ifndef CB_CLAIM_H
#define CB_CLAIM_H

#include <commandbus/receive.h>

#include "statements.h"

/* Adopts a result in binary, also on failure. CB_SCHEMA when its columns are not those of
 * receive.sql. */
bool claim_adopt(PGresult *result, const char *domain, cb_claim **ret, cb_error *e);

#endif
