/* commandbus top: the fleet, live. */
#include "cli.h"
#include "fleet_view.h"
#include "output.h"
#include "terminal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    int64_t interval;
    bool once;
} top_args;

#define AT(field) offsetof(top_args, field)

static const arg_spec top_specs[] = {
    { "interval", ARG_DURATION, AT(interval), "DURATION", .help = "between two looks [1s]",
      .min = 100, .max = 3600 * 1000 },
    { "once", ARG_FLAG, AT(once), NULL, .help = "two looks an interval apart, printed once" },
    { 0 },
};

/* What happened between two looks at the domains: messages in and out a second, and the trend. */

enum {
    RATES_TREND = 8
};

typedef struct {
    char domain[48];
    bool known; /* there were two looks: in and out mean something */
    double in, out;
    double at;                  /* seconds, of the last look */
    int64_t sent, depth;        /* of the last look */
    int64_t trend[RATES_TREND]; /* the last depths, oldest first */
    size_t n_trend;
} domain_rate;

/* Start with { 0 }. */
typedef struct {
    domain_rate *items; /* owned */
    size_t n;
} rates;

/* NULL for a domain never seen. */
static const domain_rate *rates_find(const rates *r, const char *domain)
{
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->items[i].domain, domain) == 0)
            return &r->items[i];
    }
    return NULL;
}

/* NULL when there is no memory. */
static domain_rate *rates_find_or_add(rates *r, const char *domain, bool *is_new)
{
    const domain_rate *known = rates_find(r, domain);
    domain_rate *items;

    *is_new = !known;
    if (known)
        return &r->items[known - r->items];
    items = realloc(r->items, (r->n + 1) * sizeof *items);
    if (!items)
        return NULL;
    r->items = items;
    items[r->n] = (domain_rate){ 0 };
    snprintf(items[r->n].domain, sizeof items->domain, "%s", domain);
    return &items[r->n++];
}

static void rates_add_trend(domain_rate *d, int64_t depth)
{
    if (d->n_trend == RATES_TREND) {
        memmove(d->trend, d->trend + 1, (RATES_TREND - 1) * sizeof *d->trend);
        d->n_trend--;
    }
    d->trend[d->n_trend++] = depth;
}

/* What was sent and is not there any more has gone out. Depths beyond 10,000 are estimates, so a
 * difference may claim that messages came out of nowhere. */
static void rates_measure(domain_rate *d, int64_t sent, int64_t depth, double now)
{
    double seconds = now - d->at;

    if (seconds <= 0)
        return;
    d->in = (double)(sent - d->sent) / seconds;
    d->out = d->in - (double)(depth - d->depth) / seconds;
    d->in = d->in > 0 ? d->in : 0;
    d->out = d->out > 0 ? d->out : 0;
    d->known = true;
}

/* Takes in the rows of cb_fleet_domains, read at `now` by terminal_clock. */
static void rates_update(rates *r, const cb_rows *domains, double now)
{
    for (size_t row = 0; row < cb_rows_count(domains); row++) {
        const char *name = cb_rows_get(domains, row, "domain");
        const char *sent = cb_rows_get(domains, row, "total_sent"),
                   *depth = cb_rows_get(domains, row, "depth");
        bool is_new;
        domain_rate *d = name && sent && depth ? rates_find_or_add(r, name, &is_new) : NULL;
        if (!d)
            continue;
        if (!is_new)
            rates_measure(d, strtoll(sent, NULL, 10), strtoll(depth, NULL, 10), now);
        d->at = now;
        d->sent = strtoll(sent, NULL, 10);
        d->depth = strtoll(depth, NULL, 10);
        rates_add_trend(d, d->depth);
    }
}

/* The domains: figures with rates, a trend and a bar. */

enum {
    BAR = 10,
    LEVELS = 8
};

/* True when the terminal's characters are UTF-8's. */
static bool top_has_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}

/* The last depths as a small line, each as high as its part of the deepest. */
static void top_add_trend(grid *g, const domain_rate *d)
{
    static const char *const blocks[LEVELS] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const marks[LEVELS] = { "_", ".", ",", "-", "~", "=", "+", "#" };
    const char *const *levels = top_has_utf8() ? blocks : marks;
    char line[RATES_TREND * 4 + 1] = "";
    int64_t most = 1;

    for (size_t i = 0; d && i < d->n_trend; i++)
        most = d->trend[i] > most ? d->trend[i] : most;
    for (size_t i = 0; d && i < d->n_trend; i++)
        strcat(line, levels[d->trend[i] * (LEVELS - 1) / most]);
    grid_add(g, GRID_PLAIN, "%s", line);
}

static void top_add_rate(grid *g, const domain_rate *d, double rate)
{
    if (d && d->known)
        grid_add(g, GRID_PLAIN, rate < 100 ? "%.1f" : "%.0f", rate);
    else
        grid_add(g, GRID_PLAIN, "-");
}

/* "[####......] 4/6 limit": leases of the limit, or of the slots. */
static void top_add_bar(grid *g, const cb_rows *rows, size_t row)
{
    double leases = fleet_number(rows, row, "live_leases"),
           limit = fleet_number(rows, row, "fleet_limit"), slots = fleet_number(rows, row, "slots");
    double most = limit > 0 ? limit : slots;
    double part = most > 0 ? leases / most : leases > 0;
    char bar[BAR + 1];

    for (int i = 0; i < BAR; i++)
        bar[i] = i < part * BAR ? '#' : '.';
    bar[BAR] = '\0';
    grid_add(g, part > 1 ? GRID_RED : GRID_PLAIN, "[%s] %.0f/%.0f %s", bar, leases, most,
             limit > 0 ? "limit" : "slots");
}

static void top_print_domains(FILE *out, const fleet_view *view, const rates *r, bool colour)
{
    static const char *const headers[] = { "DOMAIN",     ">IN/S", ">OUT/S",   ">DEPTH",
                                           "TREND",      ">DUE",  ">WAITING", "LIVE LEASES",
                                           ">INSTANCES", NULL };
    const cb_rows *rows = view->domains;
    OWNED(grid) g = grid_new(headers);

    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        const domain_rate *d = rates_find(r, fleet_text(rows, i, "domain"));
        bool waits = cb_rows_get(rows, i, "waiting_seconds") != NULL;
        char age[24];
        grid_add(g, fleet_domain_colour(view, i), "%s", fleet_text(rows, i, "domain"));
        top_add_rate(g, d, d ? d->in : 0);
        top_add_rate(g, d, d ? d->out : 0);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "depth"));
        top_add_trend(g, d);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "visible"));
        grid_add(g, GRID_PLAIN, "%s",
                 waits ? fleet_age(fleet_number(rows, i, "waiting_seconds"), age, sizeof age)
                       : "-");
        top_add_bar(g, rows, i);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "instances"));
    }
    grid_print(out, g, colour);
}

/* Rows as a JSON array on one line; with rates as in_per_second and out_per_second unless r is
 * NULL. */
static void top_write_rows(FILE *out, const cb_rows *rows, const rates *r)
{
    fputc('[', out);
    for (size_t row = 0; row < cb_rows_count(rows); row++) {
        const domain_rate *d = r ? rates_find(r, fleet_text(rows, row, "domain")) : NULL;
        fputs(row > 0 ? ",{" : "{", out);
        output_json_members(out, rows, row);
        if (d && d->known)
            fprintf(out, ",\"in_per_second\":%.3f,\"out_per_second\":%.3f", d->in, d->out);
        else if (r)
            fputs(",\"in_per_second\":null,\"out_per_second\":null", out);
        fputc('}', out);
    }
    fputc(']', out);
}

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
    free(t->rates.items);
}

/* A connection that was lost is tried again at the next look: a restart of the server is what one
 * wants to watch. False only for what trying again will not change. */
static bool top_look(top *t)
{
    cb_error e = { 0 };
    bool fine = (!cb_db_is_lost(t->c->db) || cb_db_reconnect(t->c->db, &e)) &&
                fleet_look(t->c->db, &t->view, &e);

    t->error = e;
    if (!fine)
        return e.code == CB_LOST || e.code == CB_AGAIN;
    t->error.code = CB_OK;
    rates_update(&t->rates, t->view.domains, terminal_clock());
    t->looks++;
    return true;
}

static void top_write_text(FILE *out, const top *t)
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

static void top_draw(const top *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return;
    top_write_text(out, t);
    fputs("\nq ends", out);
    if (fclose(out) == 0)
        screen_draw(text);
    free(text);
}

static int top_run_on_screen(top *t)
{
    screen_event event = SCREEN_TIME;
    bool fine = true;

    screen_enter();
    while (fine && event != SCREEN_QUIT) {
        if (event == SCREEN_TIME)
            fine = top_look(t);
        if (fine)
            top_draw(t);
        event = fine ? screen_wait(t->interval) : event;
    }
    screen_leave();
    return fine ? EXIT_OK : cli_fail(t->c, &t->error);
}

static void top_print_block(const top *t)
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
        top_write_text(stdout, t);
        putchar('\n');
    }
}

static void top_pause(double seconds)
{
    struct timespec left = { .tv_sec = (time_t)seconds };

    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0)
        ;
}

/* Blocks of lines, from the second look on: the first knows no rates. Ends when nobody reads any
 * more. */
static int top_run_in_blocks(top *t, bool once)
{
    for (bool printed = false; !(once && printed);) {
        if (!top_look(t) || (once && t->error.code != CB_OK))
            return cli_fail(t->c, &t->error);
        if (t->looks != 1 || t->error.code != CB_OK) {
            top_print_block(t);
            printed = true;
        }
        if (fflush(stdout) != 0 || ferror(stdout))
            return EXIT_OK;
        if (!(once && printed))
            top_pause(t->interval);
    }
    return EXIT_OK;
}

static int top_run(cli *c, void *untyped)
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
        return top_run_in_blocks(&t, args->once);
    return top_run_on_screen(&t);
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
    .args = top_specs,
    .args_size = sizeof(top_args),
    .run = top_run,
};
