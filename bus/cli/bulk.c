/* One decision about many things. */
#include "bulk.h"

#include "fail.h"
#include "json_text.h"
#include "output.h"
#include "terminal.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 1000

/* What was there when we looked. Only these are touched: what is retried may be back before we
 * are done, and must not be retried forever. */
typedef struct {
    cb_rows **pages;
    size_t n_pages, n;
} selection;

static void selection_free(selection *s)
{
    for (size_t i = 0; i < s->n_pages; i++)
        cb_rows_free(s->pages[i]);
    free(s->pages);
}

static bool select_all(cli *c, const bulk *b, selection *s, cb_error *e)
{
    size_t most = b->most ? b->most : SIZE_MAX, found = PAGE;

    while (found == PAGE && s->n < most) {
        cb_rows **pages = realloc(s->pages, (s->n_pages + 1) * sizeof(cb_rows *));
        if (!pages)
            return fail_memory(e);
        s->pages = pages;
        int limit = most - s->n < PAGE ? (int)(most - s->n) : PAGE;
        if (!b->select(c->db, b->arg, limit, (int)s->n, &s->pages[s->n_pages], e))
            return false;
        found = cb_rows_count(s->pages[s->n_pages++]);
        s->n += found;
    }
    return true;
}

static const char *noun(const bulk *b, size_t n)
{
    return n == 1 ? b->one : b->many;
}

void bulk_report(const cli *c, const bulk *b, size_t acted, size_t refused)
{
    if (c->json) {
        json_object *object = json_object_new_object();
        json_object_object_add(object, "action", json_object_new_string(b->verb));
        json_object_object_add(object, "acted", json_object_new_int64((int64_t)acted));
        json_object_object_add(object, "refused", json_object_new_int64((int64_t)refused));
        json_print_adopt(object);
        return;
    }
    printf("%s %zu %s", b->done, acted, noun(b, acted));
    if (refused)
        printf(", %zu refused: somebody else was faster", refused);
    putchar('\n');
}

static void show_selection(const cli *c, const bulk *b, const selection *s)
{
    output_pages(c, s->pages, s->n_pages, b->columns);
    fflush(stdout);
    cli_note(c, "would %s %zu %s; nothing was changed", b->verb, s->n, noun(b, s->n));
}

/* True when they may be touched. Asks only a person, and refuses to guess without one. */
static bool is_allowed(const cli *c, const bulk *b, size_t n, cb_error *e)
{
    char answer[16] = "";

    if (b->yes || n <= 1)
        return true;
    if (c->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        cb_fail(e, CB_INVALID_OPERATION, "this would %s %zu %s: nothing was changed", b->verb, n,
                b->many);
        return fail_hint(e, "Look with --dry-run, then say --yes: there is nobody to ask here.");
    }
    fprintf(stderr, "%s %zu %s? [y/N] ", b->verb, n, b->many);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    return cb_fail(e, CB_INVALID_OPERATION, "nothing was changed");
}

/* A lock that somebody holds for a moment is no reason to stop. */
static bool act_on(cli *c, const bulk *b, const cb_rows *rows, size_t row, cb_error *e)
{
    for (int i = 0; i < 3; i++) {
        if (b->act(c->db, b->arg, rows, row, e))
            return true;
        if (e->code != CB_AGAIN)
            return false;
    }
    return false;
}

static bool is_gone(cb_code code)
{
    return code == CB_INVALID_OPERATION || code == CB_COMMAND_NOT_FOUND ||
           code == CB_PROCESS_NOT_FOUND;
}

typedef struct {
    size_t acted, refused;
    progress bar;
} tally;

static bool act_on_page(cli *c, const bulk *b, const cb_rows *rows, tally *t, cb_error *e)
{
    for (size_t row = 0; row < cb_rows_count(rows) && !progress_is_interrupted(); row++) {
        if (act_on(c, b, rows, row, e))
            t->acted++;
        else if (is_gone(e->code))
            t->refused++;
        else
            return false;
        progress_show(&t->bar, t->acted + t->refused);
    }
    return true;
}

static int act_on_all(cli *c, const bulk *b, const selection *s)
{
    tally t = { 0 };
    cb_error e = { 0 };
    bool good = true;

    progress_start(&t.bar, c, b->verb, s->n);
    for (size_t i = 0; i < s->n_pages && good; i++)
        good = act_on_page(c, b, s->pages[i], &t, &e);
    progress_end(&t.bar);

    bulk_report(c, b, t.acted, t.refused);
    if (!good)
        return cli_fail(c, &e);
    size_t left = s->n - t.acted - t.refused;
    if (left > 0) {
        cli_note(c, "interrupted: %zu %s were left as they are", left, b->many);
        return EXIT_REFUSED;
    }
    return EXIT_OK;
}

int bulk_run(cli *c, const bulk *b)
{
    selection s = { 0 };
    cb_error e = { 0 };
    int code = EXIT_OK;

    if (!cli_connect(c, true, &e) || !select_all(c, b, &s, &e))
        code = cli_fail(c, &e);
    else if (b->dry_run)
        show_selection(c, b, &s);
    else if (!is_allowed(c, b, s.n, &e))
        code = cli_fail(c, &e);
    else
        code = act_on_all(c, b, &s);
    selection_free(&s);
    return code;
}
