/* ReleaseFx {"contractId": "FXC-…"}: gives the contract back. What BookFx gave back will do as its
 * data. */
#include "fx.h"
#include "http_release.h"

cb_outcome fx_release(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    return http_release(fx_client(), ctx, "/fx/bookings", "contractId", result);
}
