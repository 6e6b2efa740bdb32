/* The risk set: has payments judged by the risk API, and takes that back.
 *
 * Start reading at book.c and release.c; the call itself is in ../http. */
#include "risk.h"

static http_client *client; /* from configure() to close() */

http_client *risk_client(void)
{
    return client;
}

static bool configure(const cb_module_config *config, cb_error *e)
{
    return http_client_configure("risk", config, &client, e);
}

static void close_client(void)
{
    http_client_free(client);
    client = NULL;
}

static const cb_handler handlers[] = {
    { "BookRisk", risk_book },
    { "ReleaseRisk", risk_release },
};

CB_MODULE(risk, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .configure = configure,
          .close = close_client);
