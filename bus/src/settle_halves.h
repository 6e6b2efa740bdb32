/* Settling where one bad item must not spoil its batch: the batch is halved until the culprit is alone, and that
 * one is settled in another form. The same for commands and for processes; what differs is the kind. */
#ifndef BUS_SETTLE_HALVES_H
#define BUS_SETTLE_HALVES_H

#include "settle_call.h"

typedef struct {
    cb_db *db;
    const char *worker;
    size_t refused; /* items that were settled in another form */
    size_t unsettled;
    cb_error error; /* of the last item that could not be settled */
} settle_run;

typedef struct {
    size_t item_size;
    bool (*settle)(const settle_run *run, void *items, size_t n, cb_error *e);
    /* Settles one that is refused so that an operator sees it. False with *why, the old or a new reason. */
    bool (*replace)(settle_run *run, void *item, cb_error *why);
} settle_kind;

/* *refused (may be NULL): how many were settled in another form. False: some, or all, could not be. */
bool settle_each(const settle_kind *kind, cb_db *db, const char *worker, void *items, size_t n,
                 size_t *refused, cb_error *e) CB_NODISCARD;

#endif
