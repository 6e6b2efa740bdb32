/* ReleaseRisk {"reference": "RISK-…"}: takes the booking back. What BookRisk gave back will do as its data. Releasing twice is
 * fine; its idempotency key is that of its own command. */
#include <stdio.h>

#include "input.h"
#include "risk.h"

typedef struct {
    char *reference;
} release;

CB_FIELDS(release_fields, release, CB_FIELD(release, reference, CB_TEXT));

cb_outcome risk_release(cb_context *ctx, const cb_command *command, json_object **result)
{
    void *data = NULL;
    char path[128];
    cb_outcome outcome = input_read(ctx, &release_fields, &data);

    (void)command;
    if (outcome != CB_SUCCESS)
        return outcome;
    const release *r = data;
    outcome = input_reference(ctx, "reference", r->reference);
    if (outcome == CB_SUCCESS) {
        snprintf(path, sizeof path, "/risk/bookings/%s/release", r->reference);
        outcome = http_post(risk_client(), ctx, path, NULL, result);
    }
    cb_fields_free(&release_fields, data);
    return outcome;
}
