/* --help and completion, from the tables. */
#include "help.h"

#include <stdio.h>
#include <string.h>

const char help_about[] =
    "Sends commands through PostgreSQL and PGMQ, and looks after those that got stuck.\n";
const char help_passwords[] =
    "Others can see a command line: keep passwords out of --url, in the environment or ~/.pgpass.\n";
const char help_durations[] = "500ms, 30s, 5m, 2h, 30d, or ISO 8601 such as PT1H30M";
const arg_exit help_exits[] = {
    { "0", "done" },
    { "1", "refused or not found" },
    { "2", "wrong usage" },
    { "3", "no database" },
    { 0 },
};

static const char *help_title(const cli_command *c, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s%s%s", c->group ? c->group : "", c->group ? " " : "", c->verb);
    return buffer;
}

void help_overview(const char *group)
{
    char name[64], example[64] = "send";

    printf("usage: commandbus %s%s [options]\n\n", group ? group : "COMMAND", group ? " VERB" : "");
    if (!group)
        puts(help_about);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        if (group && !((*c)->group && strcmp((*c)->group, group) == 0))
            continue;
        printf("  %-16s %s\n", help_title(*c, name, sizeof name), (*c)->summary);
        if (group)
            help_title(*c, example, sizeof example);
    }
    puts("\noptions of every command:");
    args_help(stdout, cli_globals);
    printf("\n%s", help_passwords);
    args_help_exits(stdout, "exit codes", help_exits);
    printf("durations: %s\n\nexample:\n  commandbus %s --help\n", help_durations, example);
}

void help_command(const cli_command *command)
{
    char name[64];

    printf("usage: commandbus %s", help_title(command, name, sizeof name));
    for (const arg_spec *s = command->args; s && s->name; s++) {
        if (s->positional)
            printf(s->required ? " %s" : " [%s]", s->name);
    }
    printf(" [options]\n\n%s.\n", command->summary);
    if (command->details)
        printf("\n%s", command->details);
    if (command->args && command->args->name) {
        puts("");
        args_help(stdout, command->args);
    }
    puts("\noptions of every command:");
    args_help(stdout, cli_globals);
    printf("\n%s\nexample:\n%s", help_passwords, command->example);
}

/* Completion of command lines, for completion.bash. */

static void complete_offer(const char *prefix, const char *dashes, const char *word)
{
    char candidate[96];

    snprintf(candidate, sizeof candidate, "%s%s", dashes, word);
    if (strncmp(candidate, prefix, strlen(prefix)) == 0)
        puts(candidate);
}

static void complete_options(const arg_spec *specs, const char *prefix)
{
    for (const arg_spec *s = specs; s && s->name; s++) {
        if (!s->positional)
            complete_offer(prefix, "--", s->name);
    }
}

/* Groups and verbs that stand alone, or the verbs of a group. */
static void complete_commands(const char *group, const char *prefix)
{
    const char *last = "";

    for (const cli_command *const *c = cli_commands; *c; c++) {
        const char *word = group || !(*c)->group ? (*c)->verb : (*c)->group;
        bool ours = !group || ((*c)->group && strcmp((*c)->group, group) == 0);
        if (ours && strcmp(word, last) != 0)
            complete_offer(prefix, "", word);
        if (ours)
            last = word;
    }
    if (!group)
        complete_offer(prefix, "", "help");
}

/* The option that waits for the word after it, or NULL. */
static const arg_spec *complete_waiting(const arg_spec *specs, const char *word)
{
    const arg_spec *s = strchr(word, '=') ? NULL : args_find(specs, word);
    return s && s->kind != ARG_FLAG ? s : NULL;
}

/* Fills the first two words that are no options. */
static size_t complete_command_words(int n, char **words, const char *found[2])
{
    size_t count = 0;

    for (int i = 0; i < n && count < 2; i++) {
        if (words[i][0] != '-')
            found[count++] = words[i];
        else if (complete_waiting(cli_globals, words[i]))
            i++;
    }
    return count;
}

void complete_words(int n, char **words)
{
    const char *prefix = n > 0 ? words[n - 1] : "", *found[2] = { NULL, NULL };
    int before = n > 0 ? n - 1 : 0;
    size_t count = complete_command_words(before, words, found);
    const char *group = count > 0 && cli_is_group(found[0]) ? found[0] : NULL;
    const cli_command *command = cli_find(group, group ? found[1] : found[0]);
    const arg_spec *option = NULL;

    if (before > 0 && (option = complete_waiting(cli_globals, words[before - 1])) == NULL &&
        command)
        option = complete_waiting(command->args, words[before - 1]);
    if (option) {
        for (const char *const *choice = option->choices; choice && *choice; choice++)
            complete_offer(prefix, "", *choice);
        return;
    }
    if (*prefix == '-') {
        complete_options(command ? command->args : NULL, prefix);
        complete_options(cli_globals, prefix);
    } else if (!command && count <= (group ? 1 : 0)) {
        complete_commands(group, prefix);
    }
}
