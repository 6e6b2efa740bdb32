/* The payment gateway. */
#ifndef PAYMENTS_GATEWAY_H
#define PAYMENTS_GATEWAY_H

#include "payment_messages.h"

/* Submits a payment for a process, once however often it is called with the same run's key. With
 * CB_SUCCESS *ret is {"reference"}, the caller's; else the run's outcome. */
cb_outcome gateway_pay(cb_context *ctx, const cb_uuid *process_id, const submit_request *r,
                       json_object **ret);

#endif
