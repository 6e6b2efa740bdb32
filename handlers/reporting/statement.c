/* A statement as the renderers take it. */
#include "statement.h"

#include <commandbus/date.h>
#include <commandbus/money.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"

const char *const statement_headings[N_COLUMNS] = {
    [COLUMN_MONTH] = "Month",     [COLUMN_COUNT] = "Transactions",
    [COLUMN_OPENING] = "Opening", [COLUMN_IN] = "In",
    [COLUMN_OUT] = "Out",         [COLUMN_CLOSING] = "Closing",
};

/* Of the amounts, in the document. */
static const char *const names[N_COLUMNS] = {
    [COLUMN_OPENING] = "opening_balance",
    [COLUMN_IN] = "in",
    [COLUMN_OUT] = "out",
    [COLUMN_CLOSING] = "closing_balance",
};

void statement_free(statement *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->accounts && i < s->n_accounts; i++)
        free(s->accounts[i].rows);
    free(s->accounts);
    free(s);
}

static bool is_month(const char *text)
{
    char day[16];
    cb_date first;

    return strlen(text) == 7 && snprintf(day, sizeof day, "%s-01", text) == 10 &&
           cb_date_parse(day, &first);
}

static bool read_row(json_object *from, const char *month, statement_row *row, cb_error *e)
{
    json_object *count = NULL;
    cb_decimal amount;

    row->cells[COLUMN_MONTH] = month;
    json_object_object_get_ex(from, "count", &count);
    if (!json_object_is_type(count, json_type_int))
        return cb_fail(e, CB_DATA, "'count' must be an integer");
    row->cells[COLUMN_COUNT] = json_object_get_string(count);
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (names[i] && (!(row->cells[i] = document_text(from, names[i], e)) ||
                         !cb_decimal_parse(row->cells[i], &amount, e)))
            return false;
    }
    return true;
}

static bool read_months(json_object *from, statement_account *account, cb_error *e)
{
    json_object *months = document_list(from, "months", e);

    if (!months)
        return false;
    size_t n = json_object_array_length(months);
    if (!(account->rows = calloc(n + 1, sizeof *account->rows)))
        return cb_fail(e, CB_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) {
        json_object *entry = json_object_array_get_idx(months, i);
        const char *month = document_text(entry, "month", e);
        if (!month || !read_row(entry, month, &account->rows[i], e))
            return false;
        if (!is_month(month))
            return cb_fail(e, CB_DATA, "a month is none");
    }
    account->n_rows = n + 1;
    return read_row(from, "Total", &account->rows[n], e);
}

static bool read_account(json_object *from, statement_account *account, cb_error *e)
{
    return (account->account_id = document_text(from, "account_id", e)) &&
           (account->holder = document_text(from, "holder", e)) &&
           (account->currency = document_text(from, "currency", e)) &&
           read_months(from, account, e);
}

bool statement_open(json_object *document, statement **ret, cb_error *e)
{
    json_object *accounts = document_list(document, "accounts", e);
    OWNED(statement) s = calloc(1, sizeof *s);

    if (!accounts)
        return false;
    size_t n = json_object_array_length(accounts);
    if (!s || !(s->accounts = calloc(n + 1, sizeof *s->accounts)))
        return cb_fail(e, CB_MEMORY, "out of memory");
    s->n_accounts = n;
    if (!(s->from_date = document_text(document, "from_date", e)) ||
        !(s->to_date = document_text(document, "to_date", e)))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!read_account(json_object_array_get_idx(accounts, i), &s->accounts[i], e))
            return false;
    }
    *ret = statement_take(&s);
    return true;
}
