/* A statement as one page of HTML: no script, nothing loaded from elsewhere, every text escaped. */
#include "render.h"

static void put_text(const char *text, FILE *out)
{
    static const char *const escapes[256] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
    };

    for (; *text; text++) {
        const char *escape = escapes[(unsigned char)*text];
        if (escape)
            fputs(escape, out);
        else
            fputc(*text, out);
    }
}

static void put_cells(const char *element, const char *const cells[], FILE *out)
{
    fputs("<tr>", out);
    for (size_t i = 0; i < N_COLUMNS; i++) {
        fprintf(out, "<%s>", element);
        put_text(cells[i], out);
        fprintf(out, "</%s>", element);
    }
    fputs("</tr>\n", out);
}

static void put_account(const statement_account *account, FILE *out)
{
    fputs("<h2>", out);
    put_text(account->account_id, out);
    fputs("</h2>\n<p>", out);
    put_text(account->holder, out);
    fputs(", ", out);
    put_text(account->currency, out);
    fputs("</p>\n<table>\n", out);
    put_cells("th", statement_headings, out);
    for (size_t i = 0; i < account->n_rows; i++)
        put_cells("td", account->rows[i].cells, out);
    fputs("</table>\n", out);
}

bool render_html(const statement *s, FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<title>Statement</title>\n<style>\n"
          "body { font-family: sans-serif; margin: 2em; }\n"
          "td, th { padding: 0.2em 1em; text-align: right; }\n"
          "tr:last-child { font-weight: bold; }\n"
          "</style>\n</head>\n<body>\n<h1>Statement</h1>\n<p>",
          out);
    put_text(s->from_date, out);
    fputs(" to ", out);
    put_text(s->to_date, out);
    fputs("</p>\n", out);
    for (size_t i = 0; i < s->n_accounts; i++)
        put_account(&s->accounts[i], out);
    fputs("</body>\n</html>\n", out);
    return true;
}
