/* The front door for handlers: what a handler is and may do (context.h), the manifest of a
 * handler set (module.h), its HTTP routes (route.h), and JSON by the rules of the bus (json.h).
 * A handler is tested without a worker by host.h; a set with process types includes process.h
 * too.
 *
 *     static cb_outcome fx_book(cb_context *ctx, const cb_command *cmd, json_object **result) { … }
 *
 *     static const cb_handler handlers[] = { { "BookFx", fx_book } };
 *     CB_MODULE(fx, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
 */
#ifndef COMMANDBUS_HANDLER_H
#define COMMANDBUS_HANDLER_H

#include <commandbus/context.h>
#include <commandbus/error.h>
#include <commandbus/json.h>
#include <commandbus/module.h>
#include <commandbus/route.h>

#endif
