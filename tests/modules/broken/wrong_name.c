/* Calls itself otherwise than its file. */
#include "handler.h"

CB_MODULE(other, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
