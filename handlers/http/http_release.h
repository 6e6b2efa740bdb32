/* Giving back what an API has booked. */
#ifndef HANDLER_HTTP_RELEASE_H
#define HANDLER_HTTP_RELEASE_H

#include "http_client.h"

/* A whole handler: posts to <bookings>/<id>/release, where `name` says which field of the command's
 * data is the id. What the booking gave back will do as data. Releasing twice is fine; the key is
 * that of the release's own command. An answer without content (204) is a yes.
 *
 * Data whose "status" is DECLINED is of a booking that may never have been one: an API that does
 * not know it (404, 410) has nothing to give back, and that is a success. For any other that answer
 * is a person's to look at. */
cb_outcome http_release(http_client *c, cb_context *ctx, const char *bookings, const char *name,
                        json_object **result);

#endif
