/* Writes commandbus(1), from the tables that --help prints, while the tree is built. */
#include "help.h"
#include "manual.h"

#include <commandbus/version.h>
#include <stdio.h>

static void man_command(const cli_command *c)
{
    char title[64], call[96];

    snprintf(title, sizeof title, "%s%s%s", c->group ? c->group : "", c->group ? " " : "", c->verb);
    snprintf(call, sizeof call, "commandbus %s", title);
    manual_subsection(stdout, title);
    manual_synopsis(stdout, call, c->args);
    manual_text(stdout, "%s.", c->summary);
    if (c->details)
        manual_text(stdout, "%s", c->details);
    manual_options(stdout, c->args);
    manual_text(stdout, "Example:");
    manual_example(stdout, c->example);
}

static void man_environment(void)
{
    manual_section(stdout, "ENVIRONMENT");
    manual_item(stdout, "COMMANDBUS_DATABASE_URL", NULL,
                "the database, as a URL or as libpq's key=value pairs, unless --url names one");
    manual_item(stdout, "COMMANDBUS_OPERATOR", NULL,
                "who decides, for the audit trail, unless --operator says so");
    manual_item(stdout, "COMMANDBUS_SETS_DIR", NULL,
                "where migrate --set looks for handler sets before the installation's folder");
    manual_item(stdout, "NO_COLOR", NULL, "if it is not empty, output has no colours");
    manual_item(stdout, "TERM", NULL,
                "if it is dumb, output has no colours; if it is dumb or unset, top prints blocks "
                "instead of redrawing the screen");
    manual_item(stdout, "LC_ALL, LC_CTYPE, LANG", NULL,
                "whether the terminal shows UTF-8: the first that is set counts");
    manual_text(stdout,
                "What libpq reads (PGPASSFILE, PGCONNECT_TIMEOUT, PGSSLMODE, PGTZ and so on) "
                "counts where the URL says nothing else.");
}

int main(void)
{
    static const arg_spec words[] = { { "COMMAND", .positional = true, .required = true },
                                      { "VERB", .positional = true },
                                      { 0 } };

    manual_begin(stdout, "commandbus", cb_version_string(), help_about);

    manual_section(stdout, "SYNOPSIS");
    manual_synopsis(stdout, "commandbus", words);

    manual_section(stdout, "DESCRIPTION");
    manual_text(stdout, "%s", help_about);
    manual_text(stdout, "commandbus help COMMAND and commandbus COMMAND --help print what COMMANDS "
                        "below says of one.");

    manual_section(stdout, "OPTIONS");
    manual_text(stdout, "These stand with every command, before or after it.");
    manual_options(stdout, cli_globals);
    manual_text(stdout, "%s", help_passwords);
    manual_text(stdout, "Durations are %s.", help_durations);

    manual_section(stdout, "COMMANDS");
    for (const cli_command *const *c = cli_commands; *c; c++)
        man_command(*c);

    manual_section(stdout, "EXIT STATUS");
    manual_exits(stdout, help_exits);
    man_environment();
    manual_section(stdout, "FILES");
    manual_item(stdout, "~/.pgpass", NULL,
                "passwords, one line a database: see the manual of libpq");
    manual_item(stdout, "share/commandbus/sets/NAME/sql", NULL,
                "of the installation: the SQL of handler set NAME, for migrate --set");
    manual_section(stdout, "SEE ALSO");
    manual_text(stdout, "commandbus-worker(1), psql(1)");
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
