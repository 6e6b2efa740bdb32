/* Calls itself otherwise than its file. */
#include "broken_handler.h"

CB_MODULE(other, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
