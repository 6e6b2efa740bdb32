/* The command line, from a table. */
#include "simulator_options.h"

#include <stdlib.h>

#include "args.h"
#include "text.h"

#define AT(field) offsetof(options, field)

static const arg_spec known[] = {
    { "port", ARG_LONG, AT(port), "P", .help = "where it listens; 0 is any free one [0]",
      .max = 65535 },
    { "bind", ARG_TEXT, AT(bind), "ADDRESS", .help = "and on which [127.0.0.1]" },
    { "seed", ARG_LONG, AT(seed), "N", .help = "same seed and same keys, same outcomes [1]",
      .max = INT64_MAX },
    { "fx-capacity", ARG_LONG, AT(simulator.capacity[API_FX]), "N",
      .help = "calls at once, 429 above it [6]", .min = 1, .max = 100000 },
    { "risk-capacity", ARG_LONG, AT(simulator.capacity[API_RISK]), "N", .help = "likewise [6]",
      .min = 1, .max = 100000 },
    { "gateway-capacity", ARG_LONG, AT(simulator.capacity[API_GATEWAY]), "N",
      .help = "likewise [30]", .min = 1, .max = 100000 },
    { "hold-seconds", ARG_LONG, AT(hold_seconds), "N",
      .help = "longest time that a call without an answer is held open [60]", .min = 1,
      .max = 3600 },
    { "chaos", ARG_FLAG, AT(simulator.chaos), NULL,
      .help =
          "everywhere 1 % permanent, 10 % transient, 3 % business failures, 2 % timeouts, 5 % pending" },
    { "help", ARG_FLAG, AT(help), NULL, .help = "print this text and end" },
    { 0 },
};

bool options_parse(char **words, options *ret, cb_error *e)
{
    const char *url = getenv("COMMANDBUS_DATABASE_URL");
    arg_target target = { .specs = known, .into = ret };
    int n = 0;

    *ret = (options){ .bind = "127.0.0.1",
                      .seed = 1,
                      .hold_seconds = 60,
                      .simulator = { .capacity = { 6, 6, 30 } } };
    while (words[n])
        n++;
    if (!args_parse(n, words, &target, 1, e)) {
        text_append(e->hint, sizeof e->hint, "%sSee --help.", *e->hint ? " " : "");
        return false;
    }
    ret->simulator.database_url = url && *url ? url : NULL;
    ret->simulator.seed = (uint64_t)ret->seed;
    ret->simulator.hold_ms = ret->hold_seconds * 1000;
    return true;
}

void options_help(FILE *out)
{
    fputs("usage: commandbus-simulator [options]\n\n"
          "Plays the FX API, the risk API, the payment gateway and the payment network over HTTP.\n"
          "Prints `port N` when it listens.\n\n",
          out);
    args_help(out, known);
    fputs("\n"
          "COMMANDBUS_DATABASE_URL is where the network answers (L1 to L4), and where pending\n"
          "outcomes are kept for a person; calls that need one are refused without.\n"
          "\n"
          "SIGTERM and SIGINT end it. exit codes: 0 ended · 1 could not start · 2 usage\n",
          out);
}
