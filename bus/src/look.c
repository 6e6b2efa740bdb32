/* Looking things up. See look.h. */
#include "look.h"

#include "cb_sql.h"
#include "pipeline.h"

bool db_look(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e)
{
    enum {
        LOOK = 1,
        STATEMENTS = 3
    };
    pipeline_statement statements[STATEMENTS] = { { .sql = cb_sql_search_path_ours },
                                                  { .sql = sql },
                                                  { .sql = cb_sql_search_path_back } };

    if (p)
        statements[LOOK].p = *p;
    if (!pipeline_run(db, statements, STATEMENTS, e))
        return false;
    *ret = PGresult_take(&statements[LOOK].result);
    pipeline_done(statements, STATEMENTS);
    return true;
}
