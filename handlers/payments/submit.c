/* SubmitPayment {"amount", "currency", "debitAccount", "creditAccount", "valueDate", "executionModel"}: hands a payment to
 * the gateway; gives back {"reference"}. The network's confirmations go to the process whose id is the command's
 * correlation id. SIM.3 */
#include "gateway.h"
#include "handlers.h"
#include "input.h"

cb_outcome submit_payment(cb_context *ctx, const cb_command *command, json_object **result)
{
    void *request = NULL;
    cb_outcome outcome = input_read(ctx, &submit_request_fields, &request);

    if (outcome == CB_SUCCESS && !command->correlation_id.text[0])
        outcome = cb_permanent(ctx, "INVALID_DATA",
                               "confirmations would find no process: there is no correlation id");
    if (outcome == CB_SUCCESS)
        outcome = gateway_pay(ctx, &command->correlation_id, request, result);
    cb_fields_free(&submit_request_fields, request);
    return outcome;
}
