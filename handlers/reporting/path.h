/* The names of files: <correlation id>/<kind>-<command id>.<ending>, and nothing else.
 *
 * Every part is a UUID or a word of a table, so that no name can lead out of the folder. All files
 * of one process lie in one folder, and the file of a command has its id: a command that runs twice
 * has one file. */
#ifndef REPORTING_PATH_H
#define REPORTING_PATH_H

#include <commandbus/handler.h>

typedef enum {
    KIND_QUERY,     /* query-….json */
    KIND_AGGREGATE, /* aggregate-….json */
    KIND_STATEMENT, /* statement-….pdf, .html or .csv */
    N_KINDS
} file_kind;

typedef struct {
    char folder[40];
    char file[72];
    char text[120]; /* both, with a / between */
} file_path;

/* The file that this command makes; `ending` is one of its kind's. */
file_path path_of(const cb_command *command, file_kind kind, const char *ending);

/* Reads a path that a command names. False, with a problem for people, unless it is the path of a
 * file of this kind (N_KINDS: of any) that belongs to the command's own correlation id. */
bool path_parse(const char *text, const cb_command *command, file_kind kind, file_path *ret,
                const char **problem);

#endif
