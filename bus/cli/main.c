/* The commandbus CLI: finds the command in the table, reads its options, runs it. */
#include "cli.h"
#include "fail.h"
#include "help.h"
#include "nearest.h"

#include <commandbus/version.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Takes the next word that is no option out of argv, or returns NULL. */
static char *main_take_word(int *argc, char **argv)
{
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return NULL;
        if (argv[i][0] == '-') {
            const arg_spec *option = args_find(cli_globals, argv[i]);
            if (option && option->kind != ARG_FLAG && !strchr(argv[i], '='))
                i++;
            continue;
        }
        char *word = argv[i];
        memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof *argv);
        --*argc;
        return word;
    }
    return NULL;
}

/* A word that no command starts with, or no verb of the group. */
static int main_unknown_command(const cli *c, const char *group, const char *word)
{
    nearest_word nearest = { .word = word, .length = strlen(word) };
    cb_error e;

    for (const cli_command *const *known = cli_commands; *known; known++) {
        bool ours = !group || ((*known)->group && strcmp((*known)->group, group) == 0);
        if (ours)
            nearest_offer(&nearest, group || !(*known)->group ? (*known)->verb : (*known)->group);
    }
    cb_fail(&e, CB_MISUSE, "unknown command '%s%s%.60s'", group ? group : "", group ? " " : "",
            word);
    if (nearest.best)
        fail_hint(&e, "Did you mean %s%s%s?", group ? group : "", group ? " " : "", nearest.best);
    return cli_usage_error(c, &e);
}

/* Without a command there are only --help, --version and mistakes. */
static int main_run_without_command(cli *c, int argc, char **argv, const char *group)
{
    arg_target target = { .specs = cli_globals, .into = c };
    cb_error e;

    if (!args_parse(argc, argv, &target, 1, &e))
        return cli_usage_error(c, &e);
    if (c->version)
        printf("commandbus %s\n", cb_version_string());
    else if (c->help)
        help_overview(group);
    else if (group)
        return cli_usage(c, "say what to do: commandbus %s ...", group);
    else
        return cli_usage(c, "say what to do");
    return EXIT_OK;
}

static int main_run_command(cli *c, int argc, char **argv)
{
    void *args = calloc(1, c->command->args_size + 1);
    arg_target targets[] = { { .specs = c->command->args, .into = args },
                             { .specs = cli_globals, .into = c } };
    cb_error e = { 0 };
    int code = EXIT_OK;

    if (!args)
        return EXIT_REFUSED;
    if (!args_parse(argc, argv, targets, 2, &e))
        code = cli_usage_error(c, &e);
    else if (c->help)
        help_command(c->command);
    else if (c->version)
        printf("commandbus %s\n", cb_version_string());
    else if (!args_require(&targets[0], &e))
        code = cli_usage_error(c, &e);
    else
        code = c->command->run(c, args);
    args_done(&targets[0]);
    free(args);
    cb_db_free(c->db);
    return code;
}

static int main_run(cli *c, int argc, char **argv)
{
    const char *word = main_take_word(&argc, argv);
    const char *group = NULL;

    if (word && strcmp(word, "help") == 0) {
        c->help = true;
        word = main_take_word(&argc, argv);
    }
    if (word && cli_is_group(word)) {
        group = word;
        word = main_take_word(&argc, argv);
    }
    if (!word)
        return main_run_without_command(c, argc, argv, group);
    c->command = cli_find(group, word);
    if (!c->command)
        return main_unknown_command(c, group, word);
    return main_run_command(c, argc, argv);
}

/* What was printed is only worth its exit code when it was written. */
static int main_finish_output(int code)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (poll(&out, 1, 0) == 1 && out.revents & POLLERR)
        return code; /* a closed pipe: the reader has seen enough */
    fputs("commandbus: the output could not be written\n", stderr);
    return code == EXIT_OK ? EXIT_REFUSED : code;
}

int main(int argc, char **argv)
{
    cli c = { 0 };

    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "__complete") == 0) {
        complete_words(argc - 2, argv + 2);
        return main_finish_output(EXIT_OK);
    }
    /* Mistakes in the options are to be told as JSON too. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        c.json = c.json || strcmp(argv[i], "--json") == 0;
    return main_finish_output(main_run(&c, argc - 1, argv + 1));
}
