/* The workers and handlers of a play: one thread that plays them all, and their deaths. */
#ifndef TEST_TOYS_SCRIPT_WORK_H
#define TEST_TOYS_SCRIPT_WORK_H

#include "stage.h"

enum {
    CROWD = 12,
    LATE = 6,
    WAIT_MS = 60000,
    PATIENCE = 8, /* decisions about a process before somebody ends it */
    VT_SECONDS = 5
};

typedef struct {
    cb_uuid id;
    int sent; /* numbered responses */
    int decisions;
    cb_uuid response_id; /* of the last one that had an id */
} actor;

/* Something that is done, but not settled yet. */
typedef struct {
    cb_uuid process_id;
    cb_process_item *item; /* of that */
    cb_settlement command;
    char *result;
} late;

typedef struct {
    stage s;
    unsigned seed, first_seed;
    char log[100];
    actor crowd[CROWD];
    int n;
    late runs[LATE], handlers[LATE];
    bool calm; /* nobody dies or is late any more */
    bool dead; /* the worker */
    long runs_made, deaths, stale, decisions;
} play;

/* Before the first run: scripts that tell their worker to die are obeyed here. */
void work_begin(void);
/* Runs a process that is due, serves a command; false: there was none. */
bool run_one(play *p);
bool serve_one(play *p, const char *domain);
/* What was done before is brought only now; nothing when there is nothing. */
void settle_late_run(play *p, late *l);
void settle_late_handler(play *p, late *l);
/* Whoever holds something is believed dead. */
void leases_end(void);
/* A wake-up is only a hint: whoever is woken for nothing goes back to sleep as before. */
void wake_all(void);

#endif
