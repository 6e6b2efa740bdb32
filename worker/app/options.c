/* The command line, from a table. */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "nearest.h"

typedef enum {
    OPTION_FLAG, /* bool */
    OPTION_TEXT, /* const char *, given once */
    OPTION_WHAT, /* the replay: perhaps with an id */
    OPTION_LIST, /* the settings: given as often as one likes */
} option_kind;

typedef struct {
    const char *name, *value; /* value: what help calls it; NULL for a flag */
    option_kind kind;
    size_t at;
    const char *help;
} option;

static const option known[] = {
    { "--profile", "P[,P]", OPTION_TEXT, offsetof(options, profiles),
      "settings of these profiles, later ones win [COMMANDBUS_PROFILE]" },
    { "--config-dir", "DIR", OPTION_TEXT, offsetof(options, config_dir),
      "where commandbus.cfg and the profiles are [the installation's]" },
    { "--set", "PATH=VALUE", OPTION_LIST, 0,
      "one setting, stronger than files and environment; may be repeated" },
    { "--check-config", NULL, OPTION_FLAG, offsetof(options, check_config),
      "print every setting, where it comes from and the limits it gives; then end" },
    { "--replay", "[ID]", OPTION_WHAT, 0,
      "check a process's history against this code: executes and writes nothing" },
    { "--all-running", NULL, OPTION_FLAG, offsetof(options, replay_all),
      "with --replay: all that have not ended" },
    { "--type", "T", OPTION_TEXT, offsetof(options, replay_type),
      "with --all-running: only of this process type" },
    { "--json", NULL, OPTION_FLAG, offsetof(options, json),
      "what --check-config or --replay prints, as JSON" },
    { "--version", NULL, OPTION_FLAG, offsetof(options, version), "print the version and end" },
    { "--help", NULL, OPTION_FLAG, offsetof(options, help), "print this text and end" },
};

static const char see_help[] = "See commandbus-worker --help.";

/* The option of "--name" or "--name=value"; *value is what stands behind the sign, or NULL. */
static const option *find(const char *word, const char **value)
{
    size_t n = strcspn(word, "=");

    *value = word[n] ? word + n + 1 : NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) == n && strncmp(known[i].name, word, n) == 0)
            return &known[i];
    }
    return NULL;
}

static bool fail_unknown(const char *word, cb_error *e)
{
    nearest_word nearest = { .word = word, .length = strcspn(word, "=") };
    char hint[128];

    if (word[0] != '-')
        return fail_misuse(e, see_help, "unexpected argument '%.100s'", word);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        nearest_offer(&nearest, known[i].name);
    snprintf(hint, sizeof hint, "Did you mean %s? %s", nearest.best ? nearest.best : "", see_help);
    return fail_misuse(e, nearest.best ? hint : see_help, "unknown option '%.100s'", word);
}

static bool keep_text(options *o, const option *is, const char *value, cb_error *e)
{
    const char **field = (const char **)(void *)((char *)o + is->at);

    if (*field)
        return fail_misuse(e, see_help, "%s is there twice", is->name);
    *field = value;
    return true;
}

/* "--replay=ID", "--replay ID", or "--replay" with more options behind it. */
static bool keep_replay(options *o, const char *value, char ***word, cb_error *e)
{
    if (o->replay)
        return fail_misuse(e, see_help, "--replay is there twice");
    if (!value && **word && ***word != '-')
        value = *(*word)++;
    o->replay = true;
    o->replay_id = value;
    return true;
}

/* Takes one option with its value, which may be the next word. */
static bool take(char ***word, options *o, cb_error *e)
{
    const char *value;
    const option *is = find(**word, &value);

    if (!is)
        return fail_unknown(**word, e);
    ++*word;
    if (is->kind == OPTION_FLAG) {
        if (value)
            return fail_misuse(e, see_help, "%s takes no value", is->name);
        *(bool *)((char *)o + is->at) = true;
        return true;
    }
    if (is->kind == OPTION_WHAT)
        return keep_replay(o, value, word, e);
    if (!value)
        value = **word ? *(*word)++ : NULL;
    if (!value)
        return fail_misuse(e, see_help, "%s needs a value: %s", is->name, is->value);
    if (is->kind == OPTION_TEXT)
        return keep_text(o, is, value, e);
    o->settings[o->n_settings++] = value;
    return true;
}

/* What goes with what. */
static bool check(const options *o, cb_error *e)
{
    if (o->json && !o->check_config && !o->replay)
        return fail_misuse(e, see_help, "--json goes with --check-config or --replay");
    if (o->replay && o->check_config)
        return fail_misuse(e, see_help, "--replay and --check-config are two things to do");
    if ((o->replay_all || o->replay_type) && !o->replay)
        return fail_misuse(e, see_help, "%s goes with --replay",
                           o->replay_all ? "--all-running" : "--type");
    if (o->replay && !o->replay_id == !o->replay_all)
        return fail_misuse(e, see_help, "--replay needs the id of a process or --all-running%s",
                           o->replay_id ? ", and not both" : "");
    if (o->replay_type && !o->replay_all)
        return fail_misuse(e, see_help, "--type goes with --all-running");
    return true;
}

bool options_parse(int argc, char **argv, options *ret, cb_error *e)
{
    *ret = (options){ .settings = calloc((size_t)argc + 1, sizeof *ret->settings) };
    if (!ret->settings)
        return fail_memory(e);
    for (char **word = argv + (argc > 0); *word;) {
        if (!take(&word, ret, e))
            return false;
    }
    return check(ret, e);
}

void options_done(options *o)
{
    free(o->settings);
    *o = (options){ 0 };
}

void options_help(FILE *out)
{
    fputs("usage: commandbus-worker [options]\n\n"
          "Claims commands and processes of its domains, runs them, settles what they come to.\n\n",
          out);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char left[40];
        snprintf(left, sizeof left, "%s %s", known[i].name, known[i].value ? known[i].value : "");
        fprintf(out, "  %-20s  %s\n", left, known[i].help);
    }
    fputs(
        "\n"
        "Each setting also has a name in the environment: http.port is COMMANDBUS_HTTP_PORT.\n"
        "Others can see a command line: keep passwords in the environment or ~/.pgpass.\n"
        "\n"
        "SIGTERM, SIGINT and SIGHUP drain: no more claims, what runs is finished, at most\n"
        "worker.shutdown-timeout; a second one stops now. (Under nohup SIGHUP is ignored.)\n"
        "\n"
        "exit codes: 0 drained · 1 ended before everything was settled · 2 configuration ·\n"
        "  3 no database, or not one to work on · 4 a handler did not return\n"
        "  of --replay: 0 nothing would diverge · 1 something would · 2 and 3 as above\n"
        "\n"
        "examples:\n"
        "  commandbus-worker --profile ratelimited-worker --set domains.fx.concurrent-messages=4\n"
        "  commandbus-worker --profile payments-worker --replay --all-running\n",
        out);
}
