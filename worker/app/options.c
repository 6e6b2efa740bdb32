/* The command line, from a table. */
#include "options.h"

#include <string.h>

#include "text.h"

#define AT(field) offsetof(options, field)

const arg_spec options_table[] = {
    { "profile", ARG_TEXT, AT(profiles), "P[,P]",
      .help = "settings of these profiles, later ones win [COMMANDBUS_PROFILE]",
      .may_be_empty = true },
    { "config-dir", ARG_FILE, AT(config_dir), "DIR",
      .help = "where commandbus.cfg and the profiles are [the installation's]" },
    { "set", ARG_LIST, AT(settings), "PATH=VALUE",
      .help = "one setting, stronger than files and environment; may be repeated" },
    { "check-config", ARG_FLAG, AT(check_config), NULL,
      .help = "print every setting, where it comes from and the limits it gives; then end" },
    { "replay", ARG_TEXT, AT(replay_id), "[ID]",
      .help = "check a process's history against this code: executes and writes nothing",
      .may_lack = true },
    { "all-running", ARG_FLAG, AT(replay_all), NULL,
      .help = "with --replay: all that have not ended" },
    { "type", ARG_TEXT, AT(replay_type), "T",
      .help = "with --all-running: only of this process type" },
    { "json", ARG_FLAG, AT(json), NULL, .help = "what --check-config or --replay prints, as JSON" },
    { "version", ARG_FLAG, AT(version), NULL, .help = "print the version and end" },
    { "help", ARG_FLAG, AT(help), NULL, .help = "print this text and end" },
    { 0 },
};

/* What goes with what. */
static bool check(const options *o, cb_error *e)
{
    if (o->json && !o->check_config && !o->replay)
        return cb_fail(e, CB_MISUSE, "--json goes with --check-config or --replay");
    if (o->replay && o->check_config)
        return cb_fail(e, CB_MISUSE, "--replay and --check-config are two things to do");
    if ((o->replay_all || o->replay_type) && !o->replay)
        return cb_fail(e, CB_MISUSE, "%s goes with --replay",
                       o->replay_all ? "--all-running" : "--type");
    if (o->replay && !o->replay_id == !o->replay_all)
        return cb_fail(e, CB_MISUSE, "--replay needs the id of a process or --all-running%s",
                       o->replay_id ? ", and not both" : "");
    if (o->replay_type && !o->replay_all)
        return cb_fail(e, CB_MISUSE, "--type goes with --all-running");
    return true;
}

bool options_parse(int argc, char **argv, options *ret, cb_error *e)
{
    arg_target target = { .specs = options_table, .into = ret };
    cb_error why = { 0 };

    *ret = (options){ 0 };
    bool good = args_parse(argc > 0 ? argc - 1 : 0, argv + 1, &target, 1, &why);
    ret->replay = ret->replay_id != NULL;
    if (ret->replay && !*ret->replay_id)
        ret->replay_id = NULL;
    if (good && check(ret, &why))
        return true;
    text_append(why.hint, sizeof why.hint, "%sSee commandbus-worker --help.", *why.hint ? " " : "");
    if (e)
        *e = why;
    return false;
}

void options_done(options *o)
{
    args_done(&(arg_target){ .specs = options_table, .into = o });
    *o = (options){ 0 };
}

const char options_about[] =
    "Claims commands and processes of its domains, runs them, settles what they come to.\n";
const char options_environment[] =
    "Each setting also has a name in the environment: http.port is COMMANDBUS_HTTP_PORT.\n";
const char options_passwords[] =
    "Others can see a command line: keep passwords in the environment or ~/.pgpass.\n";
const char options_signals[] =
    "SIGTERM, SIGINT and SIGHUP drain: no more claims, what runs is finished, at most\n"
    "worker.shutdown-timeout; a second one stops now. (Under nohup SIGHUP is ignored.)\n";
const char options_examples[] =
    "  commandbus-worker --profile ratelimited-worker --set domains.fx.concurrent-messages=4\n"
    "  commandbus-worker --profile payments-worker --replay --all-running\n";
const arg_exit options_exits[] = {
    { "0", "drained" },
    { "1", "ended before everything was settled" },
    { "2", "configuration" },
    { "3", "no database, or not one to work on" },
    { "4", "a handler did not return" },
    { 0 },
};
const arg_exit options_replay_exits[] = {
    { "0", "nothing would diverge" },
    { "1", "something would" },
    { "2 and 3", "as above" },
    { 0 },
};

void options_help(FILE *out)
{
    fprintf(out, "usage: commandbus-worker [options]\n\n%s\n", options_about);
    args_help(out, options_table);
    fprintf(out, "\n%s%s\n%s\n", options_environment, options_passwords, options_signals);
    args_help_exits(out, "exit codes", options_exits);
    args_help_exits(out, "  of --replay", options_replay_exits);
    fprintf(out, "\nexamples:\n%s", options_examples);
}
