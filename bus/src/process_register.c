/* Registering process types. */
#include <commandbus/process_row.h>

#include "array.h"
#include "cb_sql.h"
#include "db.h"

static void add_names(buffer *b, const char *const *names)
{
    size_t n = 0;

    while (names && names[n])
        n++;
    array_begin(b, ARRAY_TEXT, n);
    for (size_t i = 0; i < n; i++)
        array_add_text(b, names[i]);
}

static bool register_one(cb_db *db, const cb_process_kind *kind, cb_error *e)
{
    OWNED_BUFFER(redact);
    params p = { 0 };

    params_text(&p, kind->process_type);
    params_text(&p, kind->domain);
    params_int(&p, kind->version);
    params_text(&p, kind->step_based ? "STEP_BASED" : "PROCESS_STEP");
    params_text(&p, kind->reply_queue);
    add_names(&redact, kind->redact);
    params_array(&p, &redact);
    params_text(&p, kind->responses);
    return db_do(db, cb_sql_register_process_type, &p, e);
}

bool cb_process_register(cb_db *db, const cb_process_kind *kinds, size_t n, cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!kinds[i].process_type || !kinds[i].domain)
            return cb_fail(e, CB_MISUSE, "a process type needs a name and a domain");
        if (!register_one(db, &kinds[i], e))
            return cb_fail_while(e, "registering process type '%s'", kinds[i].process_type);
    }
    return true;
}
