/* The handlers and routes of the payments set. What each takes and gives is said in its own
 * file. */
#ifndef PAYMENTS_HANDLERS_H
#define PAYMENTS_HANDLERS_H

#include <commandbus/handler.h>
#include <commandbus/route.h>

cb_handler_fn submit_payment, update_payment_status;
cb_route_fn route_submit, route_batch, route_status;

#endif
