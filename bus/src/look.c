/* Looking things up. See look.h. */
#include "look.h"

#include "cb_sql.h"
#include "pipeline.h"

static bool look(cb_db *db, db_access access, const char *sql, const params *p, PGresult **ret,
                 cb_error *e)
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
    if (!pipeline_run(db, access, statements, STATEMENTS, e))
        return false;
    *ret = PGresult_take(&statements[LOOK].result);
    pipeline_done(statements, STATEMENTS);
    return true;
}

bool db_look(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e)
{
    return look(db, DB_READS, sql, p, ret, e);
}

bool db_look_and_write(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e)
{
    return look(db, DB_WRITES, sql, p, ret, e);
}
