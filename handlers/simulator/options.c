/* The command line, from a table. */
#include "options.h"

#include <commandbus/handler.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    OPTION_FLAG,
    OPTION_NUMBER,
    OPTION_TEXT
} option_kind;

#define CAPACITY(api) offsetof(options, simulator.capacity[api])

static const struct {
    const char *name, *value;
    option_kind kind;
    size_t at;
    int64_t least, most;
    const char *help;
} known[] = {
    { "--port", "P", OPTION_NUMBER, offsetof(options, port), 0, 65535,
      "where it listens; 0 is any free one [0]" },
    { "--bind", "ADDRESS", OPTION_TEXT, offsetof(options, bind), 0, 0, "and on which [127.0.0.1]" },
    { "--seed", "N", OPTION_NUMBER, offsetof(options, seed), 0, INT64_MAX,
      "same seed and same keys, same outcomes [1]" },
    { "--fx-capacity", "N", OPTION_NUMBER, CAPACITY(API_FX), 1, 100000,
      "calls at once, 429 above it [6]" },
    { "--risk-capacity", "N", OPTION_NUMBER, CAPACITY(API_RISK), 1, 100000, "likewise [6]" },
    { "--gateway-capacity", "N", OPTION_NUMBER, CAPACITY(API_GATEWAY), 1, 100000, "likewise [30]" },
    { "--hold-seconds", "N", OPTION_NUMBER, offsetof(options, hold_seconds), 1, 3600,
      "longest time that a call without an answer is held open [60]" },
    { "--chaos", NULL, OPTION_FLAG, offsetof(options, simulator.chaos), 0, 0,
      "everywhere 1 % permanent, 10 % transient, 3 % business failures, 2 % timeouts, 5 % pending" },
    { "--help", NULL, OPTION_FLAG, offsetof(options, help), 0, 0, "print this text and end" },
};

static bool take_number(int64_t *to, size_t i, const char *text, cb_error *e)
{
    char *end;

    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < known[i].least || number > known[i].most)
        return cb_fail(e, CB_MISUSE, "%s must be a number from %lld to %lld", known[i].name,
                       (long long)known[i].least, (long long)known[i].most);
    *to = number;
    return true;
}

/* Takes one option and its value, which is the next word. */
static bool take(char ***word, options *o, cb_error *e)
{
    size_t i = 0;

    while (i < CB_COUNT(known) && strcmp(known[i].name, **word) != 0)
        i++;
    if (i == CB_COUNT(known))
        return cb_fail(e, CB_MISUSE, "unknown option '%.60s': see --help", **word);
    ++*word;
    char *at = (char *)o + known[i].at;
    if (known[i].kind == OPTION_FLAG)
        return *(bool *)at = true;
    if (!**word)
        return cb_fail(e, CB_MISUSE, "%s needs a value", known[i].name);
    const char *value = *(*word)++;
    if (known[i].kind == OPTION_NUMBER)
        return take_number((int64_t *)(void *)at, i, value, e);
    *(const char **)(void *)at = value;
    return true;
}

bool options_parse(char **words, options *ret, cb_error *e)
{
    const char *url = getenv("COMMANDBUS_DATABASE_URL");

    *ret = (options){ .bind = "127.0.0.1",
                      .seed = 1,
                      .hold_seconds = 60,
                      .simulator = { .capacity = { 6, 6, 30 } } };
    while (*words) {
        if (!take(&words, ret, e))
            return false;
    }
    ret->simulator.database_url = url && *url ? url : NULL;
    ret->simulator.seed = (uint64_t)ret->seed;
    ret->simulator.hold_ms = ret->hold_seconds * 1000;
    return true;
}

void options_help(FILE *out)
{
    char left[40];

    fputs("usage: commandbus-simulator [options]\n\n"
          "Plays the FX API, the risk API, the payment gateway and the payment network over HTTP.\n"
          "Prints `port N` when it listens.\n\n",
          out);
    for (size_t i = 0; i < CB_COUNT(known); i++) {
        snprintf(left, sizeof left, "%s %s", known[i].name, known[i].value ? known[i].value : "");
        fprintf(out, "  %-20s  %s\n", left, known[i].help);
    }
    fputs("\n"
          "COMMANDBUS_DATABASE_URL is where the network answers (L1 to L4), and where pending\n"
          "outcomes are kept for a person; calls that need one are refused without.\n"
          "\n"
          "SIGTERM and SIGINT end it. exit codes: 0 ended · 1 could not start · 2 usage\n",
          out);
}
