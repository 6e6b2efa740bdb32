/* commandbus purge: retention by hand. */
#include "cli.h"
#include "duration.h"
#include "json_text.h"
#include "terminal.h"

#include <commandbus/purge.h>
#include <json-c/json.h>
#include <stdio.h>

#define CENTURY_MS 3162240000000LL

typedef struct {
    int64_t commands, audit, archives, processes, all;
    int batch_size;
} purge_args;

#define AT(field) offsetof(purge_args, field)
/* 0 means "keep forever" elsewhere, so it is not taken for "delete everything" here. */
#define AGE .min = 1, .max = CENTURY_MS

static const arg_spec purge_specs[] = {
    { "commands", ARG_DURATION, AT(commands), "AGE",
      .help = "finished commands older than this, with their closed batches; kept while their "
              "reply lies unread",
      AGE },
    { "audit", ARG_DURATION, AT(audit), "AGE", .help = "audit records older than this", AGE },
    { "archives", ARG_DURATION, AT(archives), "AGE", .help = "archived messages older than this",
      AGE },
    { "processes", ARG_DURATION, AT(processes), "AGE",
      .help = "processes that ended before this, with their history", AGE },
    { "all", ARG_DURATION, AT(all), "AGE", .help = "all four", AGE },
    { "batch-size", ARG_INT, AT(batch_size), "N",
      .help = "rows of each kind in one transaction [1000]", .min = 1, .max = 100000 },
    { 0 },
};

static void purge_add(cb_purge_counts *sum, const cb_purge_counts *round)
{
    sum->commands += round->commands;
    sum->batches += round->batches;
    sum->audit += round->audit;
    sum->archives += round->archives;
    sum->processes += round->processes;
}

static int64_t purge_rows(const cb_purge_counts *counts)
{
    return counts->commands + counts->batches + counts->audit + counts->archives +
           counts->processes;
}

static void purge_report(const cli *c, const cb_purge_counts *n)
{
    if (!c->json) {
        printf("removed %lld commands, %lld batches, %lld audit records, %lld archived messages, "
               "%lld processes\n",
               (long long)n->commands, (long long)n->batches, (long long)n->audit,
               (long long)n->archives, (long long)n->processes);
        return;
    }
    json_object *object = json_object_new_object();
    json_put_int(object, "commands", n->commands);
    json_put_int(object, "batches", n->batches);
    json_put_int(object, "audit", n->audit);
    json_put_int(object, "archives", n->archives);
    json_put_int(object, "processes", n->processes);
    json_print_adopt(object);
}

static bool purge_all(cli *c, const cb_purge_options *options, cb_purge_counts *sum, cb_error *e)
{
    progress bar;
    cb_purge_counts round = { 0 };
    bool good = true;

    progress_start(&bar, c, "removing", 0);
    do {
        good = cb_purge(c->db, options, &round, e);
        if (good)
            purge_add(sum, &round);
        progress_show(&bar, (size_t)purge_rows(sum));
    } while (good && purge_rows(&round) > 0 && !progress_is_interrupted());
    progress_end(&bar);
    return good;
}

static const char *purge_age(int64_t ms, int64_t all_ms, char *buffer, size_t size)
{
    int64_t chosen = ms ? ms : all_ms;
    return chosen ? duration_interval(chosen, buffer, size) : NULL;
}

static int purge_run(cli *c, void *untyped)
{
    const purge_args *args = untyped;
    char commands[DURATION_SIZE], audit[DURATION_SIZE], archives[DURATION_SIZE],
        processes[DURATION_SIZE];
    cb_purge_counts sum = { 0 };
    cb_error e = { 0 };

    if (!args->commands && !args->audit && !args->archives && !args->processes && !args->all)
        return cli_usage(c, "say what may go and how old it must be, for example --all 30d");
    cb_purge_options options = {
        .commands = purge_age(args->commands, args->all, commands, sizeof commands),
        .audit = purge_age(args->audit, args->all, audit, sizeof audit),
        .archives = purge_age(args->archives, args->all, archives, sizeof archives),
        .processes = purge_age(args->processes, args->all, processes, sizeof processes),
        .batch_size = args->batch_size,
    };
    if (!cli_connect(c, true, &e))
        return cli_fail(c, &e);
    bool good = purge_all(c, &options, &sum, &e);
    purge_report(c, &sum);
    if (!good)
        return cli_fail(c, &e);
    if (progress_is_interrupted()) {
        cli_note(c, "interrupted: run it again for the rest");
        return EXIT_REFUSED;
    }
    return EXIT_OK;
}

const cli_command purge_command = {
    .verb = "purge",
    .summary =
        "Removes finished commands and processes, audit records and archived messages by age",
    .details =
        "Works in small transactions, in rounds until nothing is left; Ctrl-C stops after one.\n"
        "A command id can be used again once its command is gone.\n",
    .example = "  commandbus purge --commands 30d --audit 90d\n",
    .args = purge_specs,
    .args_size = sizeof(purge_args),
    .run = purge_run,
};
