/* An operator's decision about one thing in a TSQ or about many: lists them first, asks, acts on
 * each. */
#ifndef CLI_BULK_H
#define CLI_BULK_H

#include "filter.h"

/* What such decisions share on the command line. First in the struct that their options fill. */
typedef struct {
    const char *domain, *id; /* of the one thing; NULL: all that match */
    const char *operator_name, *reason;
    filter_args filter;
    bool all, dry_run, yes;
} bulk_args;

/* Table rows. `at` is the caller's offsetof macro of bulk_args, `at_filter` that of its filter. */
/* clang-format off */
#define BULK_WHICH(at, at_filter, one, many, everything) \
    FILTER_DOMAIN(at_filter), FILTER_TYPE(at_filter, one), FILTER_ERROR(at_filter), \
    FILTER_BATCH(at_filter), FILTER_OLDER(at_filter, "in the TSQ for at least this long"), \
    FILTER_LIMIT(at_filter, "all"), \
    { "all", ARG_FLAG, at(all), NULL, .help = everything " in the TSQ" }, \
    { "dry-run", ARG_FLAG, at(dry_run), NULL, .help = "only show which " many " it would be" }, \
    { "yes", ARG_FLAG, at(yes), NULL, \
      .help = "do not ask; needed for more than one " one " without a terminal" }, \
    BULK_OPERATOR(at)
#define BULK_OPERATOR(at) \
    { "operator", ARG_TEXT, at(operator_name), "NAME", \
      .help = "who decides [$COMMANDBUS_OPERATOR, else your login]" }
#define BULK_REASON(at, text) \
    { "reason", ARG_TEXT, at(reason), "TEXT", .help = text }
/* clang-format on */

typedef struct {
    const char *verb, *done;  /* "retry", "retried" */
    const char *wants_reason; /* the mistake when there is none; NULL: it may lack */
    /* A refusal INVALID_OPERATION or *_NOT_FOUND means that somebody else was faster. */
    bool (*act)(cb_db *db, void *args, const char *domain, const char *id, cb_error *e);
} bulk_decision;

/* What the decisions are about. */
typedef struct {
    const char *one, *many;            /* "command", "commands" */
    const char *leave_out, *say_which; /* mistakes in the choice of them */
    const char *const *columns;        /* what people see of them */
    const char *id_column;
    const bulk_decision *decisions; /* a verb each */
    /* Of the options, without a database: a failure is a mistake in usage. NULL: nothing to
     * check. */
    bool (*check)(void *args, cb_error *e);
    /* On the connection, before anything else; NULL: nothing. */
    bool (*prepare)(cb_db *db, void *args, cb_error *e);
    bool (*select)(cb_db *db, void *args, int limit, int offset, cb_rows **ret, cb_error *e);
} bulk_kind;

/* The whole command: checks, connects, and decides about the one thing or about all that
 * `select` finds. `args` is what its options filled. Returns the exit code. */
int bulk_run(cli *c, const bulk_kind *kind, void *args);

#endif
