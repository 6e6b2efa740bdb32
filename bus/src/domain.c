/* Registering domains. */
#include <commandbus/domain.h>

#include "cb_sql.h"
#include "db.h"

bool cb_domain_register(cb_db *db, const char *domain, const char *reply_queue, cb_error *e)
{
    params p = { 0 };

    if (!domain)
        return cb_fail(e, CB_MISUSE, "a domain needs a name");
    params_text(&p, domain);
    params_text(&p, reply_queue);
    return db_do(db, cb_sql_register_domain, &p, e);
}
