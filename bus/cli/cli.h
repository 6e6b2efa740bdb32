/* What every command of the CLI gets: the settings, the connection, and how it fails. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "args.h"

#include <commandbus/db.h>
#include <commandbus/error.h>
#include <stdbool.h>

enum {
    EXIT_OK = 0,
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DATABASE = 3,
};

typedef struct cli cli;

/* A row of the table of commands. */
typedef struct {
    const char *group; /* "tsq", or NULL when the verb stands alone */
    const char *verb;
    const char *summary; /* one line */
    const char *details; /* further lines of --help, or NULL */
    const char *example; /* lines of --help, each ends with \n */
    const arg_spec *args;
    size_t args_size;               /* of the struct that args fills */
    int (*run)(cli *c, void *args); /* returns the exit code */
} cli_command;

struct cli {
    bool json, quiet, help, version; /* global options */
    const char *url;
    const cli_command *command; /* the one that runs, or NULL */
    bool connecting;            /* cli_connect was called */
    cb_db *db;                  /* once that succeeded; owned */
};

/* Connects to --url, the environment's URL or the default. A command that only works on a
 * migrated database asks for the schema check. */
bool cli_connect(cli *c, bool check_schema, cb_error *e);

/* Says the error on stderr and returns the exit code it means. */
int cli_fail(const cli *c, const cb_error *e);

/* A mistake on the command line: says it, points to --help, returns EXIT_USAGE. */
int cli_usage(const cli *c, const char *fmt, ...) CB_PRINTF(2, 3);
int cli_usage_error(const cli *c, const cb_error *e);

/* Who decides: what was given, else the environment's name, else the login. NULL when nobody knows. */
const char *cli_operator(const char *given);

/* A remark on stderr, unless --quiet. */
void cli_note(const cli *c, const char *fmt, ...) CB_PRINTF(2, 3);

#endif
