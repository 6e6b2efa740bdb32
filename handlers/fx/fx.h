/* The handlers of the fx set. What each takes and gives is said in its own file. */
#ifndef FX_H
#define FX_H

#include "http_client.h"

cb_handler_fn fx_book, fx_release;

/* Where they call. */
http_client *fx_client(void);

#endif
