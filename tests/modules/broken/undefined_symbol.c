/* Calls a function that no commandbus has. */
#include <commandbus/module.h>

cb_handler_fn cb_of_another_version;

static const cb_handler handlers[] = { { "Future", cb_of_another_version } };

CB_MODULE(undefined_symbol, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
