/* A statement as CSV (RFC 4180): a line per account and month, none for the totals, which a sheet
 * can make.
 *
 * Texts that a spreadsheet would take for a formula get a ' before them; every text is in quotes.
 * Amounts are numbers and stay as they are: statement.c has looked. */
#include "render.h"

#include <string.h>

#define LINE_END "\r\n"

static void put_text(const char *text, FILE *out)
{
    fputc('"', out);
    if (*text && strchr("=+-@\t\r\n", *text))
        fputc('\'', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_row(const statement_account *account, const statement_row *row, FILE *out)
{
    const char *const texts[] = { account->account_id, account->holder, account->currency };

    for (size_t i = 0; i < CB_COUNT(texts); i++) {
        put_text(texts[i], out);
        fputc(',', out);
    }
    for (size_t i = 0; i < N_COLUMNS; i++)
        fprintf(out, "%s%s", i ? "," : "", row->cells[i]);
    fputs(LINE_END, out);
}

bool render_csv(const statement *s, FILE *out)
{
    fputs("Account,Holder,Currency", out);
    for (size_t i = 0; i < N_COLUMNS; i++)
        fprintf(out, ",%s", statement_headings[i]);
    fputs(LINE_END, out);
    for (size_t a = 0; a < s->n_accounts; a++) {
        const statement_account *account = &s->accounts[a];
        for (size_t i = 0; i + 1 < account->n_rows; i++)
            put_row(account, &account->rows[i], out);
    }
    return true;
}
