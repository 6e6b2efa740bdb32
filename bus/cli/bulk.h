/* One decision about many things: lists them first, asks, acts on each. */
#ifndef CLI_BULK_H
#define CLI_BULK_H

#include "cli.h"

#include <commandbus/query.h>

typedef struct {
    const char *verb, *done;    /* "retry", "retried" */
    const char *one, *many;     /* "command", "commands" */
    const char *const *columns; /* what people see of them */
    bool dry_run, yes;
    size_t most; /* 0: all that match */
    void *arg;   /* of the two functions */
    bool (*select)(cb_db *db, void *arg, int limit, int offset, cb_rows **ret, cb_error *e);
    /* A refusal INVALID_OPERATION or *_NOT_FOUND means that somebody else was faster. */
    bool (*act)(cb_db *db, void *arg, const cb_rows *rows, size_t row, cb_error *e);
} bulk;

/* Connects, and decides about all that `select` finds. Returns the exit code. */
int bulk_run(cli *c, const bulk *b);

/* How many were acted on, and how many somebody else had dealt with before. */
void bulk_report(const cli *c, const bulk *b, size_t acted, size_t refused);

#endif
