/* The socket of the HTTP server, with errors that say what to do. */
#ifndef APP_HTTP_LISTEN_H
#define APP_HTTP_LISTEN_H

#include <commandbus/error.h>
#include <stdbool.h>
#include <stddef.h>

/* Room for "[address]:port". */
#define HTTP_ADDRESS_MOST 80

typedef struct {
    const char *key; /* of the configuration, for messages */
    int number;      /* 0: any that is free */
} http_port;

/* Listens on an IPv4 or IPv6 address; "::" takes both. The caller closes *ret. `address` gets what it
 * really listens on. */
bool http_listen(const char *bind, const http_port *port, int *ret, char address[HTTP_ADDRESS_MOST],
                 cb_error *e) CB_NODISCARD;

#endif
