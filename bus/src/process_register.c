/* Registering process types. */
#include <commandbus/process_row.h>

#include "cb_sql.h"
#include "db.h"

bool cb_process_register(cb_db *db, const cb_process_kind *kinds, size_t n, cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        params p = { 0 };

        if (!kinds[i].process_type || !kinds[i].domain)
            return cb_fail(e, CB_MISUSE, "a process type needs a name and a domain");
        params_text(&p, kinds[i].process_type);
        params_text(&p, kinds[i].domain);
        params_int(&p, kinds[i].version);
        params_text(&p, kinds[i].step_based ? "STEP_BASED" : "PROCESS_STEP");
        params_text(&p, kinds[i].reply_queue);
        if (!db_do(db, cb_sql_register_process_type, &p, e))
            return cb_fail_while(e, "registering process type '%s'", kinds[i].process_type);
    }
    return true;
}
