/* Options and named arguments from tables: one table gives parsing, checks, help and completion. */
#ifndef BASE_ARGS_H
#define BASE_ARGS_H

#include <commandbus/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The kind decides what is accepted and the type of the field it goes to. */
typedef enum {
    ARG_FLAG,     /* bool */
    ARG_TEXT,     /* const char * */
    ARG_FILE,     /* const char *; completion offers files */
    ARG_ID,       /* const char *, a UUID */
    ARG_CHOICE,   /* const char *, one of choices (any case on input) */
    ARG_INT,      /* int, min to max */
    ARG_LONG,     /* int64_t, min to max */
    ARG_DURATION, /* int64_t in ms, min to max */
    ARG_LIST,     /* arg_list: may be given several times */
    ARG_OTHER,    /* what `read` makes of it */
} arg_kind;

typedef struct {
    const char **items; /* owned, the texts are argv's */
    size_t n;
} arg_list;

/* Fills the field from the text. When it fails, the message is put behind the name of the option. */
typedef bool arg_read_fn(const char *text, void *field, cb_error *e);

typedef struct {
    const char *name; /* "max-attempts"; "DOMAIN" for a positional argument; NULL ends a table */
    arg_kind kind;
    size_t at;         /* offset of the field */
    const char *value; /* what help calls the value; NULL for flags and positional arguments */
    const char *help;
    bool positional;
    bool required;
    bool may_lack;     /* of a text: without a value it is "" */
    bool may_be_empty; /* of a text: "" is a value */
    int64_t min, max;
    const char *const *choices; /* NULL ends them */
    arg_read_fn *read;
} arg_spec;

#define ARG_MAX_SPECS 32

/* A table and the struct it fills, which holds what is not given already: zeros or defaults. */
typedef struct {
    const arg_spec *specs; /* NULL: an empty table */
    void *into;
    bool seen[ARG_MAX_SPECS];
} arg_target;

/* Fills the targets from argv[0] to argv[argc - 1]. Positional arguments belong to the first target.
 * Texts are borrowed from argv. Every failure but CB_MEMORY is CB_MISUSE. */
bool args_parse(int argc, char **argv, arg_target *targets, size_t n, cb_error *e);

/* Fails unless everything required was given. */
bool args_require(const arg_target *target, cb_error *e);

/* Frees what args_parse allocated. */
void args_done(arg_target *target);

/* The option `--name` of `word` ("--name" or "--name=value"), or NULL. */
const arg_spec *args_find(const arg_spec *specs, const char *word);

/* A line for each, with its help. */
void args_help(FILE *out, const arg_spec *specs);

/* What an exit code says. */
typedef struct {
    const char *code; /* NULL ends a table */
    const char *meaning;
} arg_exit;

/* "TITLE: 0 done · 1 refused", in lines of less than 90 columns. */
void args_help_exits(FILE *out, const char *title, const arg_exit *exits);

#endif
