/* Completion of command lines for completion.bash, from the tables. */
#include "commands.h"
#include "help.h"

#include <stdio.h>
#include <string.h>

static void offer(const char *prefix, const char *dashes, const char *word)
{
    char candidate[96];

    snprintf(candidate, sizeof candidate, "%s%s", dashes, word);
    if (strncmp(candidate, prefix, strlen(prefix)) == 0)
        puts(candidate);
}

static void offer_options(const arg_spec *specs, const char *prefix)
{
    for (const arg_spec *s = specs; s && s->name; s++) {
        if (!s->positional)
            offer(prefix, "--", s->name);
    }
}

/* Groups and verbs that stand alone, or the verbs of a group. */
static void offer_commands(const char *group, const char *prefix)
{
    const char *last = "";

    for (const cli_command *const *c = cli_commands; *c; c++) {
        const char *word = group || !(*c)->group ? (*c)->verb : (*c)->group;
        bool ours = !group || ((*c)->group && strcmp((*c)->group, group) == 0);
        if (ours && strcmp(word, last) != 0)
            offer(prefix, "", word);
        if (ours)
            last = word;
    }
    if (!group)
        offer(prefix, "", "help");
}

/* The option that waits for the word after it, or NULL. */
static const arg_spec *waiting(const arg_spec *specs, const char *word)
{
    const arg_spec *s = strchr(word, '=') ? NULL : args_find(specs, word);
    return s && s->kind != ARG_FLAG ? s : NULL;
}

/* Fills the first two words that are no options. */
static size_t command_words(int n, char **words, const char *found[2])
{
    size_t count = 0;

    for (int i = 0; i < n && count < 2; i++) {
        if (words[i][0] != '-')
            found[count++] = words[i];
        else if (waiting(cli_globals, words[i]))
            i++;
    }
    return count;
}

void complete_words(int n, char **words)
{
    const char *prefix = n > 0 ? words[n - 1] : "", *found[2] = { NULL, NULL };
    int before = n > 0 ? n - 1 : 0;
    size_t count = command_words(before, words, found);
    const char *group = count > 0 && cli_is_group(found[0]) ? found[0] : NULL;
    const cli_command *command = cli_find(group, group ? found[1] : found[0]);
    const arg_spec *option = NULL;

    if (before > 0 && (option = waiting(cli_globals, words[before - 1])) == NULL && command)
        option = waiting(command->args, words[before - 1]);
    if (option) {
        for (const char *const *choice = option->choices; choice && *choice; choice++)
            offer(prefix, "", *choice);
        return;
    }
    if (*prefix == '-') {
        offer_options(command ? command->args : NULL, prefix);
        offer_options(cli_globals, prefix);
    } else if (!command && count <= (group ? 1 : 0)) {
        offer_commands(group, prefix);
    }
}
