/* The handlers of the set. */
#ifndef GREETINGS_H
#define GREETINGS_H

#include <commandbus/handler.h>

cb_handler_fn greetings_hello;

#endif
