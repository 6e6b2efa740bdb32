/* A statement as PDF, by libharu: pages of A4, a table per account. The fonts are those that every
 * reader brings, so that a worker needs none; letters that they lack become ?.
 *
 * libharu remembers its first error and does nothing from then on: one look at the end is
 * enough. */
#include "render.h"

#include <hpdf.h>
#include <stdlib.h>

#include "latin.h"

enum {
    MARGIN = 50,
    LINE = 16,
    LONGEST_TEXT = 80,
};

/* Right edges of the columns, in points from the left of the page. */
static const float edges[N_COLUMNS] = { 110, 190, 280, 370, 460, 545 };

typedef struct {
    HPDF_Doc doc;
    HPDF_Font plain, bold;
    HPDF_Page page;
    float y; /* of the line to come */
    int pages;
} sheet;

/* Without one libharu would call nothing as well; but the errors are looked at, and this says
 * so. */
static void on_error(HPDF_STATUS error, HPDF_STATUS detail, void *arg)
{
    (void)error;
    (void)detail;
    (void)arg;
}

static void put(sheet *s, HPDF_Font font, float size, float x, const char *latin)
{
    HPDF_Page_SetFontAndSize(s->page, font, size);
    HPDF_Page_BeginText(s->page);
    HPDF_Page_TextOut(s->page, x, s->y, latin);
    HPDF_Page_EndText(s->page);
}

static void turn_page(sheet *s)
{
    char number[16];

    s->page = HPDF_AddPage(s->doc);
    HPDF_Page_SetSize(s->page, HPDF_PAGE_SIZE_A4, HPDF_PAGE_PORTRAIT);
    snprintf(number, sizeof number, "%d", ++s->pages);
    s->y = MARGIN / 2;
    put(s, s->plain, 8, edges[N_COLUMNS - 1], number);
    s->y = HPDF_Page_GetHeight(s->page) - MARGIN;
}

/* Room for so many lines, on this page or on a new one. */
static void need_lines(sheet *s, int lines)
{
    if (s->y - (float)(lines * LINE) < MARGIN)
        turn_page(s);
}

static void put_row(sheet *s, HPDF_Font font, const char *const cells[])
{
    need_lines(s, 1);
    HPDF_Page_SetFontAndSize(s->page, font, 9);
    for (size_t i = 0; i < N_COLUMNS; i++)
        put(s, font, 9, edges[i] - HPDF_Page_TextWidth(s->page, cells[i]), cells[i]);
    s->y -= LINE;
}

static void put_account(sheet *s, const statement_account *account)
{
    char text[LONGEST_TEXT], line[LONGEST_TEXT + 8];

    need_lines(s, 5); /* no heading at the foot of a page */
    s->y -= LINE;
    put(s, s->bold, 12, MARGIN, latin_of(account->account_id, text, sizeof text));
    s->y -= LINE;
    snprintf(line, sizeof line, "%s, %.3s", latin_of(account->holder, text, sizeof text),
             account->currency);
    put(s, s->plain, 9, MARGIN, line);
    s->y -= LINE;
    put_row(s, s->bold, statement_headings);
    for (size_t i = 0; i < account->n_rows; i++)
        put_row(s, i + 1 < account->n_rows ? s->plain : s->bold, account->rows[i].cells);
}

static void put_statement(sheet *s, const statement *from)
{
    char text[LONGEST_TEXT];

    s->plain = HPDF_GetFont(s->doc, "Helvetica", "WinAnsiEncoding");
    s->bold = HPDF_GetFont(s->doc, "Helvetica-Bold", "WinAnsiEncoding");
    HPDF_SetCompressionMode(s->doc, HPDF_COMP_TEXT);
    turn_page(s);
    put(s, s->bold, 18, MARGIN, "Statement");
    s->y -= LINE;
    snprintf(text, sizeof text, "%.10s to %.10s", from->from_date, from->to_date);
    put(s, s->plain, 9, MARGIN, text);
    s->y -= LINE;
    for (size_t i = 0; i < from->n_accounts; i++)
        put_account(s, &from->accounts[i]);
}

static bool copy_to(HPDF_Doc doc, FILE *out)
{
    HPDF_BYTE piece[4096];

    if (HPDF_SaveToStream(doc) != HPDF_OK)
        return false;
    for (HPDF_UINT32 left = HPDF_GetStreamSize(doc); left > 0;) {
        HPDF_UINT32 n = left < sizeof piece ? left : sizeof piece;
        HPDF_STATUS status = HPDF_ReadFromStream(doc, piece, &n);
        if ((status != HPDF_OK && status != HPDF_STREAM_EOF) || n == 0 || n > left)
            return false;
        fwrite(piece, 1, n, out);
        left -= n;
    }
    return true;
}

bool render_pdf(const statement *s, FILE *out)
{
    sheet paper = { .doc = HPDF_New(on_error, NULL) };

    if (!paper.doc)
        return false;
    put_statement(&paper, s);
    bool rendered = HPDF_GetError(paper.doc) == HPDF_OK && copy_to(paper.doc, out);
    HPDF_Free(paper.doc);
    return rendered;
}
