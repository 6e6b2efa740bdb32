/* Sending an answer. */
#ifndef APP_HTTP_REPLY_H
#define APP_HTTP_REPLY_H

#include <microhttpd.h>

#include "http_route.h"

/* Adopts the answer's body. MHD_NO closes the connection: there was no memory. */
enum MHD_Result http_reply(struct MHD_Connection *connection, http_answer *answer);

#endif
