/* The fx set: books and releases contracts at the FX API.
 *
 * Start reading at book.c and release.c; the call itself is in ../http. */
#include "fx.h"

static http_client *client; /* from configure() to close() */

http_client *fx_client(void)
{
    return client;
}

static bool configure(const cb_module_config *config, cb_error *e)
{
    return http_client_configure("fx", config, &client, e);
}

static void close_client(void)
{
    http_client_free(client);
    client = NULL;
}

static const cb_handler handlers[] = {
    { "BookFx", fx_book },
    { "ReleaseFx", fx_release },
};

CB_MODULE(fx, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .configure = configure,
          .close = close_client);
