/* Calls of a handler to somebody's API: JSON over HTTP, within the time that the run has.
 *
 *     OWNED(json_object) answer = NULL;
 *     cb_outcome outcome = http_post(client, ctx, "/bookings", body, &answer);
 *
 *     if (outcome != CB_SUCCESS)
 *         return outcome;
 *
 * Thread-safety: a client is used by any number of threads at once. It keeps a connection open for
 * each call that was ever under way at the same time, so for each slot one. */
#ifndef HANDLER_HTTP_CLIENT_H
#define HANDLER_HTTP_CLIENT_H

#include <commandbus/module.h>

typedef struct http_client http_client;

/* Takes the settings of `set`: handlers.<set>.url, which is required, and handlers.<set>.ca-file.
 * For configure(). Any other is refused. */
bool http_client_configure(const char *set, const cb_module_config *config, http_client **ret,
                           cb_error *e) CB_NODISCARD;
/* When no call is under way any more: for close(). NULL is fine. */
void http_client_free(http_client *c);
DEFINE_OWNED(http_client, http_client_free)

/* Posts `body` (NULL: {}) to <url><path> with the run's idempotency key. The outcome is the run's,
 * with its code, and follows from the answer (http_answer.h); with CB_SUCCESS *ret is the answer's
 * JSON object, the caller's. */
cb_outcome http_post(http_client *c, cb_context *ctx, const char *path, json_object *body,
                     json_object **ret);
/* The same; `behaviour` (NULL: none) is how the simulator is to behave in this call, a JSON object
 * that goes along as the header Simulator-Behaviour. One that is longer than 4 KiB or not printable
 * ASCII is permanent INVALID_DATA, and nobody is called. */
cb_outcome http_post_behaving(http_client *c, cb_context *ctx, const char *path, json_object *body,
                              json_object *behaviour, json_object **ret);
/* As http_post; *status becomes that of the answer, and stays what it was when there was none. */
cb_outcome http_call(http_client *c, cb_context *ctx, const char *path, json_object *body,
                     json_object **ret, long *status);

#endif
