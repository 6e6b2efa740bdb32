/* Has a route with an invalid path. */
#include "broken_handler.h"

static void answer(const cb_http_request *request, cb_http_answer *ret)
{
    (void)request, (void)ret;
}

static const cb_route routes[] = { { "GET", "/fine/{id}", answer }, { "GET", "/bad{id}", answer } };

CB_MODULE(bad_route, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .routes = routes,
          .n_routes = CB_COUNT(routes));
