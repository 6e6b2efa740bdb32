/* SubmitPayment {"paymentId", "debitAccount", "creditAccount", "debitAmount", "debitCurrency",
 * "creditAmount", "creditCurrency", "fxContractId", "fxRate", "valueDate", "executionModel",
 * "behaviour"}: hands a payment to the gateway; gives back {"reference"}. The network's
 * confirmations go to the process that sent the command: its id is the correlation id. Nobody else
 * can send it, or he would have the network confirm the payment of somebody else. SIM.3 */
#include "gateway.h"
#include "handlers.h"
#include "input.h"

cb_outcome submit_payment(cb_context *ctx, const cb_command *command, json_object **result)
{
    static const char *const optional[] = { "fxContractId", "fxRate", NULL };
    void *request = NULL;
    cb_outcome outcome = input_read(ctx, &submit_request_fields, optional, &request);

    if (outcome == CB_SUCCESS && !cb_uuid_is_derived(&command->command_id))
        outcome = cb_permanent(ctx, "NOT_OF_A_PROCESS",
                               "confirmations would find no process: none has sent this command");
    if (outcome == CB_SUCCESS)
        outcome = gateway_pay(ctx, &command->correlation_id, request, result);
    cb_fields_free(&submit_request_fields, request);
    return outcome;
}
