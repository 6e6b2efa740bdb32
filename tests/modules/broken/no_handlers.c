/* Offers nothing. */
#include <commandbus/module.h>

CB_MODULE(no_handlers, .handlers = NULL);
