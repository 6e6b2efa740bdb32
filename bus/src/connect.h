/* Getting a connection from a URL, without ever showing its password. */
#ifndef CB_CONNECT_H
#define CB_CONNECT_H

#include <commandbus/error.h>
#include <libpq-fe.h>

/* The caller owns *ret (PQfinish). CB_MISUSE: no URL; CB_LOST: nobody answers, or not now;
 * CB_DENIED: the login is refused. */
bool connect_to(const char *url, PGconn **ret, cb_error *e);

#endif
