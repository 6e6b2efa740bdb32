/* One decision about many commands of the troubleshooting queue. */
#include "json_text.h"
#include "output.h"
#include "progress.h"
#include "tsq.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 1000

const char *const tsq_columns[] = { "domain",     "command_id",    "command_type", "attempts",
                                    "error_code", "error_message", "tsq_at",       NULL };

/* What was in the TSQ when we looked. Only these are touched: a command that is retried may be back
 * before we are done, and must not be retried forever. */
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

static bool select_commands(cli *c, tsq_args *args, selection *s, cb_error *e)
{
    cb_command_filter filter = filter_of(&args->filter);
    size_t most = args->filter.limit ? (size_t)args->filter.limit : SIZE_MAX;
    size_t found = PAGE;

    while (found == PAGE && s->n < most) {
        cb_rows **pages = realloc(s->pages, (s->n_pages + 1) * sizeof(cb_rows *));
        if (!pages)
            return cb_fail(e, CB_MEMORY, "out of memory");
        s->pages = pages;
        filter.limit = most - s->n < PAGE ? (int)(most - s->n) : PAGE;
        filter.offset = (int)s->n;
        if (!cb_tsq_list(c->db, &filter, &s->pages[s->n_pages], e))
            return false;
        found = cb_rows_count(s->pages[s->n_pages++]);
        s->n += found;
    }
    return true;
}

void tsq_report(const cli *c, const tsq_verb *verb, size_t acted, size_t refused)
{
    if (c->json) {
        json_object *object = json_object_new_object();
        json_object_object_add(object, "action", json_object_new_string(verb->name));
        json_object_object_add(object, "acted", json_object_new_int64((int64_t)acted));
        json_object_object_add(object, "refused", json_object_new_int64((int64_t)refused));
        json_print_adopt(object);
        return;
    }
    printf("%s %zu %s", verb->done, acted, acted == 1 ? "command" : "commands");
    if (refused)
        printf(", %zu refused: somebody else was faster", refused);
    putchar('\n');
}

static void show_selection(const cli *c, const tsq_verb *verb, const selection *s)
{
    output_pages(c, s->pages, s->n_pages, tsq_columns);
    fflush(stdout);
    cli_note(c, "would %s %zu %s; nothing was changed", verb->name, s->n,
             s->n == 1 ? "command" : "commands");
}

/* True when the commands may be touched. Asks only a person, and refuses to guess without one. */
static bool is_allowed(const cli *c, const tsq_verb *verb, const tsq_args *args, size_t n,
                       cb_error *e)
{
    char answer[16] = "";

    if (args->yes || n <= 1)
        return true;
    if (c->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        cb_fail(e, CB_INVALID_OPERATION, "this would %s %zu commands: nothing was changed",
                verb->name, n);
        snprintf(e->hint, sizeof e->hint,
                 "Look with --dry-run, then say --yes: there is nobody to ask here.");
        return false;
    }
    fprintf(stderr, "%s %zu commands? [y/N] ", verb->name, n);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    return cb_fail(e, CB_INVALID_OPERATION, "nothing was changed");
}

/* A lock that somebody holds for a moment is no reason to stop. */
static bool act_on(cli *c, const tsq_verb *verb, const cb_tsq_action *action, cb_error *e)
{
    for (int i = 0; i < 3; i++) {
        if (verb->act(c->db, action, e))
            return true;
        if (e->code != CB_AGAIN)
            return false;
    }
    return false;
}

typedef struct {
    size_t acted, refused;
    progress bar;
} tally;

static bool act_on_page(cli *c, const tsq_verb *verb, const cb_rows *rows, cb_tsq_action action,
                        tally *t, cb_error *e)
{
    for (size_t row = 0; row < cb_rows_count(rows) && !progress_is_interrupted(); row++) {
        action.domain = cb_rows_get(rows, row, "domain");
        action.command_id = cb_rows_get(rows, row, "command_id");
        if (act_on(c, verb, &action, e))
            t->acted++;
        else if (e->code == CB_INVALID_OPERATION || e->code == CB_COMMAND_NOT_FOUND)
            t->refused++;
        else
            return false;
        progress_show(&t->bar, t->acted + t->refused);
    }
    return true;
}

static int act_on_all(cli *c, const tsq_verb *verb, const tsq_args *args, const char *operator,
                      const selection * s)
{
    cb_tsq_action action = { .operator_name = operator,
                             .reason = args->reason,
                             .result = args->result };
    tally t = { 0 };
    cb_error e = { 0 };
    bool good = true;

    progress_start(&t.bar, c, verb->name, s->n);
    for (size_t i = 0; i < s->n_pages && good; i++)
        good = act_on_page(c, verb, s->pages[i], action, &t, &e);
    progress_end(&t.bar);

    tsq_report(c, verb, t.acted, t.refused);
    if (!good)
        return cli_fail(c, &e);
    if (t.acted + t.refused < s->n) {
        cli_note(c, "interrupted: %zu commands were left as they are", s->n - t.acted - t.refused);
        return EXIT_REFUSED;
    }
    return EXIT_OK;
}

int tsq_bulk(cli *c, const tsq_verb *verb, tsq_args *args, const char *operator)
{
    selection s = { 0 };
    cb_error e = { 0 };
    int code = EXIT_OK;

    if (!cli_connect(c, true, &e) || !select_commands(c, args, &s, &e))
        code = cli_fail(c, &e);
    else if (args->dry_run)
        show_selection(c, verb, &s);
    else if (!is_allowed(c, verb, args, s.n, &e))
        code = cli_fail(c, &e);
    else
        code = act_on_all(c, verb, args, operator, & s);
    selection_free(&s);
    return code;
}
