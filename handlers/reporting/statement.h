/* A statement as the renderers take it: an aggregate whose every value was looked at. Everything is
 * text, borrowed from the document, which must outlive it. */
#ifndef REPORTING_STATEMENT_H
#define REPORTING_STATEMENT_H

#include <commandbus/error.h>
#include <commandbus/handler.h>

typedef enum {
    COLUMN_MONTH, /* 2024-01; of the last row "Total" */
    COLUMN_COUNT,
    COLUMN_OPENING,
    COLUMN_IN,
    COLUMN_OUT,
    COLUMN_CLOSING,
    N_COLUMNS
} statement_column;

extern const char *const statement_headings[N_COLUMNS];

typedef struct {
    const char *cells[N_COLUMNS];
} statement_row;

typedef struct {
    const char *account_id, *holder, *currency;
    statement_row *rows; /* a month each, and the whole period last */
    size_t n_rows;
} statement_account;

typedef struct {
    const char *from_date, *to_date;
    statement_account *accounts;
    size_t n_accounts;
} statement;

/* CB_DATA when the document is not what an aggregation writes. */
bool statement_open(json_object *document, statement **ret, cb_error *e) CB_NODISCARD;
/* NULL is fine. */
void statement_free(statement *s);
DEFINE_OWNED(statement, statement_free)

#endif
