/* The simulator's HTTP server: a thread for each connection, so that any number of calls can take
 * their time at once. */
#ifndef SIMULATOR_HTTP_H
#define SIMULATOR_HTTP_H

#include "simulator.h"

typedef struct http http;

/* Listens on this address; port 0 is any free one. Borrows s. */
bool http_start(simulator *s, const char *bind, int port, http **ret, cb_error *e) CB_NODISCARD;
int http_port(const http *h);
/* Ends all connections and waits for their threads; call simulator_end before. NULL is fine. */
void http_stop(http *h);

#endif
