/* An operator's decision about one thing in a TSQ or about many. */
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

typedef struct {
    const bulk_kind *kind;
    const bulk_decision *decision;
    bulk_args *args;
} bulk;

/* What was there when we looked. Only these are touched: what is retried may be back before we
 * are done, and must not be retried forever. */
typedef struct {
    cb_rows **pages;
    size_t n_pages, n;
} bulk_selection;

static void bulk_selection_free(bulk_selection *s)
{
    for (size_t i = 0; i < s->n_pages; i++)
        cb_rows_free(s->pages[i]);
    free(s->pages);
}

static bool bulk_select_all(cli *c, const bulk *b, bulk_selection *s, cb_error *e)
{
    size_t most = b->args->filter.limit ? (size_t)b->args->filter.limit : SIZE_MAX, found = PAGE;

    while (found == PAGE && s->n < most) {
        cb_rows **pages = realloc(s->pages, (s->n_pages + 1) * sizeof(cb_rows *));
        if (!pages)
            return fail_memory(e);
        s->pages = pages;
        int limit = most - s->n < PAGE ? (int)(most - s->n) : PAGE;
        if (!b->kind->select(c->db, b->args, limit, (int)s->n, &s->pages[s->n_pages], e))
            return false;
        found = cb_rows_count(s->pages[s->n_pages++]);
        s->n += found;
    }
    return true;
}

static const char *bulk_noun(const bulk *b, size_t n)
{
    return n == 1 ? b->kind->one : b->kind->many;
}

/* How many were acted on, and how many somebody else had dealt with before. */
static void bulk_report(const cli *c, const bulk *b, size_t acted, size_t refused)
{
    if (c->json) {
        json_object *object = json_object_new_object();
        json_put_text(object, "action", b->decision->verb);
        json_put_int(object, "acted", (int64_t)acted);
        json_put_int(object, "refused", (int64_t)refused);
        json_print_adopt(object);
        return;
    }
    printf("%s %zu %s", b->decision->done, acted, bulk_noun(b, acted));
    if (refused)
        printf(", %zu refused: somebody else was faster", refused);
    putchar('\n');
}

/* True when they may be touched. Asks only a person, and refuses to guess without one. */
static bool bulk_is_allowed(const cli *c, const bulk *b, size_t n, cb_error *e)
{
    char answer[16] = "";

    if (b->args->yes || n <= 1)
        return true;
    if (c->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        cb_fail(e, CB_INVALID_OPERATION, "this would %s %zu %s: nothing was changed",
                b->decision->verb, n, b->kind->many);
        return fail_hint(e, "Look with --dry-run, then say --yes: there is nobody to ask here.");
    }
    fprintf(stderr, "%s %zu %s? [y/N] ", b->decision->verb, n, b->kind->many);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    return cb_fail(e, CB_INVALID_OPERATION, "nothing was changed");
}

/* A lock that somebody holds for a moment is no reason to stop. */
static bool bulk_act_on(cli *c, const bulk *b, const cb_rows *rows, size_t row, cb_error *e)
{
    const char *domain = cb_rows_get(rows, row, "domain");
    const char *id = cb_rows_get(rows, row, b->kind->id_column);

    for (int i = 0; i < 3; i++) {
        if (b->decision->act(c->db, b->args, domain, id, e))
            return true;
        if (e->code != CB_AGAIN)
            return false;
    }
    return false;
}

static bool bulk_is_gone(cb_code code)
{
    return code == CB_INVALID_OPERATION || code == CB_COMMAND_NOT_FOUND ||
           code == CB_PROCESS_NOT_FOUND;
}

typedef struct {
    size_t acted, refused;
    progress bar;
} bulk_tally;

static bool bulk_act_on_page(cli *c, const bulk *b, const cb_rows *rows, bulk_tally *t, cb_error *e)
{
    for (size_t row = 0; row < cb_rows_count(rows) && !progress_is_interrupted(); row++) {
        if (bulk_act_on(c, b, rows, row, e))
            t->acted++;
        else if (bulk_is_gone(e->code))
            t->refused++;
        else
            return false;
        progress_show(&t->bar, t->acted + t->refused);
    }
    return true;
}

static int bulk_act_on_all(cli *c, const bulk *b, const bulk_selection *s)
{
    bulk_tally t = { 0 };
    cb_error e = { 0 };
    bool good = true;

    progress_start(&t.bar, c, b->decision->verb, s->n);
    for (size_t i = 0; i < s->n_pages && good; i++)
        good = bulk_act_on_page(c, b, s->pages[i], &t, &e);
    progress_end(&t.bar);

    bulk_report(c, b, t.acted, t.refused);
    if (!good)
        return cli_fail(c, &e);
    size_t left = s->n - t.acted - t.refused;
    if (left > 0) {
        cli_note(c, "interrupted: %zu %s were left as they are", left, b->kind->many);
        return EXIT_REFUSED;
    }
    return EXIT_OK;
}

/* What is wrong on the command line, or NULL. Finds out who decides. */
static const char *bulk_mistake(const bulk *b)
{
    bulk_args *args = b->args;
    const filter_args *f = &args->filter;
    bool filtered = f->domain || f->type || f->error_code || f->batch || f->older_than;

    args->operator_name = cli_operator(args->operator_name);
    if (b->decision->wants_reason && !args->reason)
        return b->decision->wants_reason;
    if (args->domain && !args->id)
        return "DOMAIN wants an ID beside it; for all of a domain say --domain";
    if (args->id && (filtered || args->all || args->dry_run || f->limit))
        return b->kind->leave_out;
    if (!args->id && !filtered && !args->all)
        return b->kind->say_which;
    if (filtered && args->all)
        return "--all and a filter exclude each other";
    return args->operator_name ? NULL : "who are you? Say it with --operator";
}

static int bulk_decide(cli *c, const bulk *b, bulk_selection *s)
{
    const bulk_args *args = b->args;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || (b->kind->prepare && !b->kind->prepare(c->db, b->args, &e)) ||
        (args->id && !b->decision->act(c->db, b->args, args->domain, args->id, &e)) ||
        (!args->id && !bulk_select_all(c, b, s, &e)))
        return cli_fail(c, &e);
    if (args->id) {
        bulk_report(c, b, 1, 0);
        return EXIT_OK;
    }
    if (args->dry_run) {
        output_pages(c, s->pages, s->n_pages, b->kind->columns);
        fflush(stdout);
        cli_note(c, "would %s %zu %s; nothing was changed", b->decision->verb, s->n,
                 bulk_noun(b, s->n));
        return EXIT_OK;
    }
    return bulk_is_allowed(c, b, s->n, &e) ? bulk_act_on_all(c, b, s) : cli_fail(c, &e);
}

int bulk_run(cli *c, const bulk_kind *kind, void *args)
{
    bulk b = { .kind = kind, .decision = kind->decisions, .args = args };
    bulk_selection s = { 0 };
    cb_error e = { 0 };

    while (strcmp(b.decision->verb, c->command->verb) != 0)
        b.decision++;
    const char *mistake = bulk_mistake(&b);
    if (mistake)
        return cli_usage(c, "%s", mistake);
    if (kind->check && !kind->check(args, &e))
        return cli_usage_error(c, &e);
    int code = bulk_decide(c, &b, &s);
    bulk_selection_free(&s);
    return code;
}
