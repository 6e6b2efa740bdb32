/* Domains and their queues. */
#ifndef COMMANDBUS_DOMAIN_H
#define COMMANDBUS_DOMAIN_H

#include <commandbus/db.h>

/* Makes <domain>__commands and <domain>__replies, and `reply_queue` too unless it is NULL. Safe to
 * repeat and to call from many clients at once. */
CB_API bool cb_domain_register(cb_db *db, const char *domain, const char *reply_queue,
                               cb_error *e) CB_NODISCARD;

#endif
