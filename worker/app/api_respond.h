/* The route by which a process is answered. */
#ifndef APP_API_RESPOND_H
#define APP_API_RESPOND_H

#include <commandbus/route.h>

/* It acts with the worker's rights, by which any response may be brought: it is for callers with a token only. */
extern const cb_route api_respond_route;

#endif
