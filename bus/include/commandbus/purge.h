/* Retention: only finished work, in small batches. */
#ifndef COMMANDBUS_PURGE_H
#define COMMANDBUS_PURGE_H

#include <commandbus/db.h>
#include <stdint.h>

/* Ages as PostgreSQL intervals ("30 days"); NULL keeps that kind forever. */
typedef struct {
    const char
        *commands; /* finished ones whose reply was read and whose batch or process has ended;
                      batches too */
    const char *audit;
    const char *archives;  /* PGMQ's archived messages */
    int batch_size;        /* rows in one transaction [1000] */
    const char *processes; /* ended ones, with their history, inbox and events */
} cb_purge_options;

typedef struct {
    int64_t commands, batches, audit, archives, processes;
} cb_purge_counts;

/* One round: at most batch_size rows of each kind. Call again until all counts are 0. */
CB_API bool cb_purge(cb_db *db, const cb_purge_options *options, cb_purge_counts *ret,
                     cb_error *e) CB_NODISCARD;

#endif
