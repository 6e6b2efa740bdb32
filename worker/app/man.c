/* Writes commandbus-worker(1), from the tables of options and settings, while the tree is built. */
#include <commandbus/version.h>
#include <stdio.h>
#include <string.h>

#include "keys.h"
#include "manual.h"
#include "options.h"
#include "text.h"

/* What the value of a key looks like. */
static const char *man_value(const config_key *key)
{
    switch (key->type) {
    case KEY_BOOL:
        return "true|false";
    case KEY_INTEGER:
        return "N";
    case KEY_SIZE:
        return "SIZE";
    case KEY_DURATION:
        return "DURATION";
    case KEY_DURATIONS:
        return "DURATION,...";
    case KEY_TEXT:
        return "TEXT";
    case KEY_NAMES:
        return "NAME,...";
    case KEY_CHOICE:
    case KEY_WORD:
        return "WORD";
    }
    return NULL;
}

static void man_key(const config_key *key)
{
    const char *otherwise = key->initial ? key->initial : key->without;
    char meaning[400];

    snprintf(meaning, sizeof meaning, "%s", key->help);
    if (otherwise && !strstr(key->help, "by default"))
        text_append(meaning, sizeof meaning, " [%s]", otherwise);
    manual_item(stdout, key->path, man_value(key), meaning);
}

static void man_settings(void)
{
    const config_section *section = NULL;

    manual_section(stdout, "SETTINGS");
    manual_text(stdout,
                "Each of these sources counts for more than those before it, setting by "
                "setting: the default (in brackets below), commandbus.cfg, each profile in "
                "turn, the environment, each --set. --check-config prints what comes of it.");
    manual_text(stdout, "Durations are 500ms, 30s, 5m, 2h, 30d, or ISO 8601 such as PT1H30M; sizes "
                        "are bytes, 512KiB or 1MiB. <d> is a domain, <s> a command step, <Type> a "
                        "process type and <set> a handler set.");
    for (size_t i = 0; i < n_config_keys; i++) {
        if (key_section(&config_keys[i]) != section) {
            section = key_section(&config_keys[i]);
            manual_subsection(stdout, section->name);
        }
        man_key(&config_keys[i]);
    }
}

static void man_environment(void)
{
    manual_section(stdout, "ENVIRONMENT");
    manual_item(stdout, "COMMANDBUS_PROFILE", NULL, "the profiles, unless --profile names them");
    manual_item(stdout, "COMMANDBUS_CONFIG_DIR", NULL,
                "the folder of the configuration, unless --config-dir names it");
    manual_text(stdout, "%s", options_environment);
    manual_text(stdout,
                "The name is COMMANDBUS_ and the path in capitals, with underscores for dots "
                "and hyphens. A variable that names no setting is ignored with a warning.");
    manual_text(stdout,
                "What libpq reads (PGPASSFILE, PGCONNECT_TIMEOUT, PGSSLMODE and so on) counts "
                "where database.url says nothing else.");
}

int main(void)
{
    manual_begin(stdout, "commandbus-worker", cb_version_string(), options_about);

    manual_section(stdout, "SYNOPSIS");
    manual_synopsis(stdout, "commandbus-worker", options_table);

    manual_section(stdout, "DESCRIPTION");
    manual_text(stdout, "%s", options_about);
    manual_text(stdout, "What it serves is said by its settings: those of its profiles, of the "
                        "environment and of --set. It logs to stderr, and answers /livez, /readyz "
                        "and /metrics over HTTP.");

    manual_section(stdout, "OPTIONS");
    manual_options(stdout, options_table);
    manual_text(stdout, "%s", options_passwords);
    man_settings();
    manual_section(stdout, "SIGNALS");
    manual_text(stdout, "%s", options_signals);
    manual_section(stdout, "EXIT STATUS");
    manual_exits(stdout, options_exits);
    manual_text(stdout, "Of --replay:");
    manual_exits(stdout, options_replay_exits);
    man_environment();

    manual_section(stdout, "FILES");
    manual_item(stdout, "etc/commandbus/commandbus.cfg", NULL,
                "of the installation: the settings that every worker reads");
    manual_item(stdout, "etc/commandbus/PROFILE.cfg", NULL, "those of a profile");
    manual_item(stdout, "lib/commandbus/handlers/SET.so", NULL,
                "the handler sets, unless worker.modules-dir names another folder");
    manual_item(stdout, "~/.pgpass", NULL,
                "passwords, one line a database: see the manual of libpq");
    manual_section(stdout, "EXAMPLES");
    manual_example(stdout, options_examples);
    manual_section(stdout, "SEE ALSO");
    manual_text(stdout, "commandbus(1)");
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
