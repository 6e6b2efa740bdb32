/* --help, from the tables. */
#include "help.h"

#include "commands.h"

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

static const char *title(const cli_command *c, char *buffer, size_t size)
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
        printf("  %-16s %s\n", title(*c, name, sizeof name), (*c)->summary);
        if (group)
            title(*c, example, sizeof example);
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

    printf("usage: commandbus %s", title(command, name, sizeof name));
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
