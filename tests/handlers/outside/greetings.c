/* What the set offers. */
#include "greetings.h"

#include <commandbus/handler.h>

static const cb_handler handlers[] = { { "Hello", greetings_hello } };

CB_MODULE(greetings, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
