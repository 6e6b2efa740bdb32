/* commandbus top: the fleet, live. */
#include "commands.h"
#include "fleet_problems.h"
#include "fleet_view.h"
#include "output.h"
#include "rates.h"
#include "screen.h"
#include "top_table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    int64_t interval;
    bool once;
} top_args;

#define AT(field) offsetof(top_args, field)

static const arg_spec specs[] = {
    { "interval", ARG_DURATION, AT(interval), "DURATION", .help = "between two looks [1s]",
      .min = 100, .max = 3600 * 1000 },
    { "once", ARG_FLAG, AT(once), NULL, .help = "two looks an interval apart, printed once" },
    { 0 },
};

typedef struct {
    cli *c;
    double interval; /* seconds */
    bool colour;
    fleet_view view;
    rates rates;
    size_t looks;
    cb_error error; /* why the last look failed; code CB_OK when it did not */
} top;

static void top_done(top *t)
{
    fleet_view_done(&t->view);
    rates_done(&t->rates);
}

static double clock_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A connection that was lost is tried again at the next look: a restart of the server is what one
 * wants to watch. False only for what trying again will not change. */
static bool look(top *t)
{
    cb_error e = { 0 };
    bool fine = (!cb_db_is_lost(t->c->db) || cb_db_reconnect(t->c->db, &e)) &&
                fleet_look(t->c->db, &t->view, &e);

    t->error = e;
    if (!fine)
        return e.code == CB_LOST || e.code == CB_AGAIN;
    t->error.code = CB_OK;
    rates_update(&t->rates, t->view.domains, clock_seconds());
    t->looks++;
    return true;
}

static void write_text(FILE *out, const top *t)
{
    char now[32] = "";
    time_t seconds = time(NULL);
    struct tm local;

    if (localtime_r(&seconds, &local))
        strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S", &local);
    fprintf(out, "commandbus top  %s  every %gs\n", now, t->interval);
    if (t->error.code != CB_OK) {
        fputs("! ", out);
        output_plain(out, t->error.message);
        fputc('\n', out);
    }
    if (!t->view.domains)
        return;
    fputc('\n', out);
    top_print_domains(out, &t->view, &t->rates, t->colour);
    fleet_print_processes(out, &t->view, t->colour);
    fleet_print_problems(out, &t->view, t->colour);
    if (fleet_has_live(&t->view))
        fputc('\n', out);
    fleet_print_instances(out, &t->view, t->colour);
}

static void draw(const top *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return;
    write_text(out, t);
    fputs("\nq ends", out);
    if (fclose(out) == 0)
        screen_draw(text);
    free(text);
}

static int run_on_screen(top *t)
{
    screen_event event = SCREEN_TIME;
    bool fine = true;

    screen_enter();
    while (fine && event != SCREEN_QUIT) {
        if (event == SCREEN_TIME)
            fine = look(t);
        if (fine)
            draw(t);
        event = fine ? screen_wait(t->interval) : event;
    }
    screen_leave();
    return fine ? EXIT_OK : cli_fail(t->c, &t->error);
}

static void print_block(const top *t)
{
    if (t->error.code != CB_OK) {
        cli_note(t->c, "commandbus: %s; trying again", t->error.message);
        return;
    }
    if (t->c->json) {
        fputs("{\"instances\":", stdout);
        top_write_rows(stdout, t->view.workers, NULL);
        fputs(",\"domains\":", stdout);
        top_write_rows(stdout, t->view.domains, &t->rates);
        fputs(",\"processes\":", stdout);
        top_write_rows(stdout, t->view.processes, NULL);
        fputs(",\"problems\":", stdout);
        fleet_write_problems(stdout, &t->view);
        puts("}");
    } else {
        write_text(stdout, t);
        putchar('\n');
    }
}

static void pause_for(double seconds)
{
    struct timespec left = { .tv_sec = (time_t)seconds };

    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0)
        ;
}

/* Blocks of lines, from the second look on: the first knows no rates. Ends when nobody reads any more. */
static int run_in_blocks(top *t, bool once)
{
    for (bool printed = false; !(once && printed);) {
        if (!look(t) || (once && t->error.code != CB_OK))
            return cli_fail(t->c, &t->error);
        if (t->looks != 1 || t->error.code != CB_OK) {
            print_block(t);
            printed = true;
        }
        if (fflush(stdout) != 0 || ferror(stdout))
            return EXIT_OK;
        if (!(once && printed))
            pause_for(t->interval);
    }
    return EXIT_OK;
}

static int run(cli *c, void *untyped)
{
    const top_args *args = untyped;
    __attribute__((cleanup(top_done))) top t = {
        .c = c,
        .interval = args->interval ? (double)args->interval / 1000 : 1,
        .colour = output_has_colour(stdout),
    };
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e))
        return cli_fail(c, &e);
    if (c->json || args->once || !screen_is_possible())
        return run_in_blocks(&t, args->once);
    return run_on_screen(&t);
}

const cli_command top_command = {
    .verb = "top",
    .summary = "The fleet live: rates, depths, work in flight against its limit",
    .details =
        "On a terminal it redraws the screen until q or Ctrl-C; elsewhere, and with --json, it prints a\n"
        "block (a line of JSON) each interval. IN/S counts what was sent, OUT/S what left the queue.\n"
        "The bar is live leases of the fleet-limit, or of the slots where there is none.\n",
    .example =
        "  commandbus top\n"
        "  commandbus top --once --json | jq '.domains[] | {domain, depth, in_per_second}'\n",
    .args = specs,
    .args_size = sizeof(top_args),
    .run = run,
};
