/* Getting a connection from a URL, without ever showing its password. */
#ifndef CB_CONNECT_H
#define CB_CONNECT_H

#include <commandbus/error.h>
#include <libpq-fe.h>

/* `application` is what the server calls it unless the URL says otherwise. The caller owns *ret (PQfinish). CB_MISUSE: no URL; CB_LOST: nobody answers, or not now;
 * CB_DENIED: the login is refused; CB_SERVER: its settings are none to work with. */
bool connect_to(const char *url, const char *application, PGconn **ret, cb_error *e);

/* CB_SERVER when literals do not mean what they do in our SQL. */
bool connect_check_settings(const PGconn *conn, cb_error *e);

#endif
