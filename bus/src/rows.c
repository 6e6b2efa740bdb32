/* Result tables: a PGresult with a friendlier face. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "look.h"

struct cb_rows {
    PGresult *result;
};

/* Types by their OIDs, which are fixed in every server. */
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_OID = 26,
    OID_JSON = 114,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_NUMERIC = 1700,
    OID_JSONB = 3802,
};

bool rows_adopt(PGresult *raw, cb_rows **ret, cb_error *e)
{
    OWNED(PGresult) result = raw;
    cb_rows *rows = malloc(sizeof *rows);

    if (!rows)
        return fail_memory(e);
    rows->result = PGresult_take(&result);
    *ret = rows;
    return true;
}

bool rows_query(cb_db *db, const char *sql, const params *p, cb_rows **ret, cb_error *e)
{
    OWNED(PGresult) result = NULL;

    if (!db_look(db, sql, p, &result, e))
        return false;
    return rows_adopt(PGresult_take(&result), ret, e);
}

void cb_rows_free(cb_rows *rows)
{
    if (!rows)
        return;
    PQclear(rows->result);
    free(rows);
}

size_t cb_rows_count(const cb_rows *rows)
{
    return (size_t)PQntuples(rows->result);
}

size_t cb_rows_columns(const cb_rows *rows)
{
    return (size_t)PQnfields(rows->result);
}

const char *cb_rows_column_name(const cb_rows *rows, size_t column)
{
    return PQfname(rows->result, (int)column);
}

static Oid type_of(const cb_rows *rows, size_t column)
{
    return PQftype(rows->result, (int)column);
}

bool cb_rows_column_is_json(const cb_rows *rows, size_t column)
{
    Oid type = type_of(rows, column);

    return type == OID_JSON || type == OID_JSONB;
}

bool cb_rows_column_is_number(const cb_rows *rows, size_t column)
{
    switch (type_of(rows, column)) {
    case OID_INT8:
    case OID_INT2:
    case OID_INT4:
    case OID_OID:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_NUMERIC:
        return true;
    default:
        return false;
    }
}

bool cb_rows_column_is_bool(const cb_rows *rows, size_t column)
{
    return type_of(rows, column) == OID_BOOL;
}

const char *cb_rows_value(const cb_rows *rows, size_t row, size_t column)
{
    int r = (int)row, c = (int)column;

    if (row >= cb_rows_count(rows) || column >= cb_rows_columns(rows) ||
        PQgetisnull(rows->result, r, c))
        return NULL;
    return PQgetvalue(rows->result, r, c);
}

const char *cb_rows_get(const cb_rows *rows, size_t row, const char *column)
{
    for (size_t i = 0; i < cb_rows_columns(rows); i++) {
        if (strcmp(cb_rows_column_name(rows, i), column) == 0)
            return cb_rows_value(rows, row, i);
    }
    return NULL;
}
