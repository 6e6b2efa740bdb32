/* Looking things up. Rows of named columns as text: what people and tools print. */
#ifndef COMMANDBUS_QUERY_H
#define COMMANDBUS_QUERY_H

#include <commandbus/db.h>
#include <stddef.h>

/* A result table, owned by the caller. Values are borrowed from it; NULL is SQL's NULL. */
typedef struct cb_rows cb_rows;
CB_API size_t cb_rows_count(const cb_rows *rows);
CB_API size_t cb_rows_columns(const cb_rows *rows);
CB_API const char *cb_rows_column_name(const cb_rows *rows, size_t column);
/* True for json and jsonb columns: their text is JSON and wants no quotes. */
CB_API bool cb_rows_column_is_json(const cb_rows *rows, size_t column);
CB_API bool cb_rows_column_is_number(const cb_rows *rows, size_t column);
/* A boolean's text is "t" or "f". */
CB_API bool cb_rows_column_is_bool(const cb_rows *rows, size_t column);
CB_API const char *cb_rows_value(const cb_rows *rows, size_t row, size_t column);
/* By column name; NULL also when there is no such column. */
CB_API const char *cb_rows_get(const cb_rows *rows, size_t row, const char *column);
CB_API void cb_rows_free(cb_rows *rows);
DEFINE_OWNED(cb_rows, cb_rows_free)

/* Which commands. NULL or 0 does not filter; limit 0 is 50. */
typedef struct {
    const char *domain;
    const char *command_id;
    const char *command_type;
    const char *status; /* in either case; CANCELLED and TSQ are understood too */
    const char *error_code;
    const char *batch_id;
    const char *created_from; /* ISO 8601, or an interval before now such as "2 hours" */
    const char *created_to;   /* likewise, exclusive */
    const char *older_than;   /* in the TSQ for at least this interval */
    int limit;
    int offset;
} cb_command_filter;

/* Newest first, without payloads. */
CB_API bool cb_command_list(cb_db *db, const cb_command_filter *filter, cb_rows **ret,
                            cb_error *e) CB_NODISCARD;
/* One command in full. Rows: 0 or 1 per domain that knows the id. */
CB_API bool cb_command_show(cb_db *db, const char *domain, const char *command_id, cb_rows **ret,
                            cb_error *e) CB_NODISCARD;
/* Its audit trail, oldest first. */
CB_API bool cb_command_trail(cb_db *db, const char *domain, const char *command_id, cb_rows **ret,
                             cb_error *e) CB_NODISCARD;
/* The troubleshooting queue, oldest first; and its counts by domain, type and error code. */
CB_API bool cb_tsq_list(cb_db *db, const cb_command_filter *filter, cb_rows **ret,
                        cb_error *e) CB_NODISCARD;
CB_API bool cb_tsq_counts(cb_db *db, const cb_command_filter *filter, cb_rows **ret,
                          cb_error *e) CB_NODISCARD;
CB_API bool cb_batch_list(cb_db *db, const char *domain, const char *status, int limit, int offset,
                          cb_rows **ret, cb_error *e) CB_NODISCARD;
CB_API bool cb_batch_show(cb_db *db, const char *batch_id, cb_rows **ret, cb_error *e) CB_NODISCARD;
/* Every queue with its depth, visible messages, oldest age and (about) how many are archived. */
CB_API bool cb_queue_list(cb_db *db, cb_rows **ret, cb_error *e) CB_NODISCARD;
/* Health of the whole: rows of (check_name, status ok|warn|fail, detail, advice). */
CB_API bool cb_doctor(cb_db *db, cb_rows **ret, cb_error *e) CB_NODISCARD;

#endif
