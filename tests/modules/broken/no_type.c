/* Has a handler for nothing. */
#include "broken_handler.h"

static const cb_handler untyped[] = { { "Fine", succeed }, { NULL, succeed } };

CB_MODULE(no_type, .handlers = untyped, .n_handlers = CB_COUNT(untyped));
