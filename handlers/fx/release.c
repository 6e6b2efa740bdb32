/* ReleaseFx {"contractId": "FXC-…"}: gives the contract back. What BookFx gave back will do as its data. Releasing twice is
 * fine; its idempotency key is that of its own command. */
#include <stdio.h>

#include "fx.h"
#include "input.h"

typedef struct {
    char *contract_id;
} release;

CB_FIELDS(release_fields, release, CB_FIELD_AS(release, contract_id, CB_TEXT, "contractId"));

cb_outcome fx_release(cb_context *ctx, const cb_command *command, json_object **result)
{
    void *data = NULL;
    char path[128];
    cb_outcome outcome = input_read(ctx, &release_fields, &data);

    (void)command;
    if (outcome != CB_SUCCESS)
        return outcome;
    const release *r = data;
    outcome = input_reference(ctx, "contractId", r->contract_id);
    if (outcome == CB_SUCCESS) {
        snprintf(path, sizeof path, "/fx/bookings/%s/release", r->contract_id);
        outcome = http_post(fx_client(), ctx, path, NULL, result);
    }
    cb_fields_free(&release_fields, data);
    return outcome;
}
