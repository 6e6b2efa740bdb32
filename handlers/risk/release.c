/* ReleaseRisk {"reference": "RISK-…"}: takes the booking back. What BookRisk gave back will do as
 * its data; see http_release.h for one that was declined. */
#include "http_release.h"
#include "risk.h"

cb_outcome risk_release(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    return http_release(risk_client(), ctx, "/risk/bookings", "reference", result);
}
