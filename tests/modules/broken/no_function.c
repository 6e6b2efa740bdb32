/* Has a type that nobody handles. */
#include "broken_handler.h"

static const cb_handler empty[] = { { "Fine", succeed }, { "Hollow", NULL } };

CB_MODULE(no_function, .handlers = empty, .n_handlers = CB_COUNT(empty));
