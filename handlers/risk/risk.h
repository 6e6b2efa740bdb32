/* The handlers of the risk set. What each takes and gives is said in its own file. */
#ifndef RISK_H
#define RISK_H

#include "http_client.h"

cb_handler_fn risk_book, risk_release;

/* Where they call. */
http_client *risk_client(void);

#endif
