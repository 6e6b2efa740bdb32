/* commandbus fleet: who is there, what each domain has, and what is wrong. */
#include "cli.h"
#include "fleet_view.h"
#include "output.h"

#include <string.h>

static void fleet_add_slots(grid *g, const cb_rows *rows, size_t row)
{
    const char *each = cb_rows_get(rows, row, "slots_each");

    if (each)
        grid_add(g, GRID_PLAIN, "%s x %s = %s", fleet_text(rows, row, "instances"), each,
                 fleet_text(rows, row, "slots"));
    else
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, row, "slots"));
}

static void fleet_print_domains(const fleet_view *view, bool colour)
{
    static const char *const headers[] = { "DOMAIN",       ">INSTANCES", ">SLOTS", ">IN FLIGHT",
                                           ">LIVE LEASES", ">LIMIT",     ">DEPTH", ">DUE",
                                           ">WAITING",     NULL };
    const cb_rows *rows = view->domains;
    OWNED(grid) g = grid_new(headers);

    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        const char *limit = fleet_text(rows, i, "fleet_limit");
        char age[24];
        grid_add(g, fleet_domain_colour(view, i), "%s", fleet_text(rows, i, "domain"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "instances"));
        fleet_add_slots(g, rows, i);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "in_flight"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "live_leases"));
        grid_add(g, GRID_PLAIN, "%s", strcmp(limit, "0") == 0 ? "none" : limit);
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "depth"));
        grid_add(g, GRID_PLAIN, "%s", fleet_text(rows, i, "visible"));
        grid_add(g, GRID_PLAIN, "%s",
                 cb_rows_get(rows, i, "waiting_seconds")
                     ? fleet_age(fleet_number(rows, i, "waiting_seconds"), age, sizeof age)
                     : "-");
    }
    if (cb_rows_count(rows) > 0)
        grid_print(stdout, g, colour);
}

static void fleet_print_json(const fleet_view *view)
{
    fputs("{\"instances\":", stdout);
    output_json_array(stdout, (cb_rows *const[]){ view->workers }, 1);
    fputs(",\n\"domains\":", stdout);
    output_json_array(stdout, (cb_rows *const[]){ view->domains }, 1);
    fputs(",\n\"processes\":", stdout);
    output_json_array(stdout, (cb_rows *const[]){ view->processes }, 1);
    fputs(",\n\"problems\":", stdout);
    fleet_write_problems(stdout, view);
    puts("}");
}

static void fleet_print_tables(const cli *c, const fleet_view *view)
{
    bool colour = output_has_colour(stdout);

    fleet_print_instances(stdout, view, colour);
    if (fleet_has_live(view) && cb_rows_count(view->domains) > 0)
        putchar('\n');
    fleet_print_domains(view, colour);
    fleet_print_processes(stdout, view, colour);
    fleet_print_problems(stdout, view, colour);
    fflush(stdout);
    if (cb_rows_count(view->domains) == 0)
        cli_note(c, "no domains yet: commandbus queue create DOMAIN");
    if (cb_rows_count(view->workers) == 0)
        cli_note(c, "no instances: nobody has started commandbus-worker on this database");
}

static int fleet_run(cli *c, void *args)
{
    __attribute__((cleanup(fleet_view_done))) fleet_view view = { 0 };
    cb_error e = { 0 };

    (void)args;
    if (!cli_connect(c, true, &e) || !fleet_look(c->db, &view, &e))
        return cli_fail(c, &e);
    if (c->json)
        fleet_print_json(&view);
    else
        fleet_print_tables(c, &view);
    return EXIT_OK;
}

const cli_command fleet_command = {
    .verb = "fleet",
    .summary = "Instances and domains: slots, work in flight, leases, limits, what waits",
    .details =
        "SLOTS is what live instances offer, instances x concurrent-messages. IN FLIGHT is what they\n"
        "say, LIVE LEASES what the database says. Lines with ! tell what is wrong: more leases than\n"
        "slots or than the fleet-limit, instances silent for a minute (those of a profile in one line,\n"
        "until they are forgotten after a day; --json has each), work that nobody serves. Of\n"
        "process types: what is DUE and since when, and what is IN TSQ (commandbus process list).\n",
    .example = "  commandbus fleet --json | jq .problems\n",
    .run = fleet_run,
};
