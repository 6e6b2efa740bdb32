/* Decisions about commands in the troubleshooting queue, one or many. */
#ifndef CLI_TSQ_H
#define CLI_TSQ_H

#include "cli.h"
#include "filter.h"

#include <commandbus/tsq.h>

typedef struct {
    const char *domain, *id, *operator_name, *reason, *result;
    filter_args filter;
    bool all, dry_run, yes;
} tsq_args;

/* What people see of a command in the TSQ. */
extern const char *const tsq_columns[];

/* One of the three decisions. */
typedef struct {
    const char *name, *done; /* "retry", "retried" */
    bool (*act)(cb_db *db, const cb_tsq_action *action, cb_error *e);
    bool needs_reason;
} tsq_verb;

/* Decides about all commands that match: lists them first, asks, acts on each. Returns the exit
 * code. */
int tsq_bulk(cli *c, const tsq_verb *verb, tsq_args *args, const char *operator);

/* How many were acted on, and how many somebody else had dealt with before. */
void tsq_report(const cli *c, const tsq_verb *verb, size_t acted, size_t refused);

#endif
