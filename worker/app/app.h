/* The program: what it is asked to do, the signals that end it, and how it ends. */
#ifndef APP_APP_H
#define APP_APP_H

#include <signal.h>

#include "config.h"
#include "log.h"

typedef enum {
    ENDED_CLEAN = 0,
    ENDED_UNDRAINED = 1,     /* some outcome was not settled: it is redelivered */
    ENDED_DIVERGED = 1,      /* --replay: some process would not go on */
    ENDED_CONFIGURATION = 2, /* also what this machine cannot give */
    ENDED_NO_DATABASE = 3,   /* or not one to work on */
    ENDED_STUCK = 4,         /* a handler did not return: its thread cannot be ended otherwise */
} ended;

/* Says on stderr, in one line and one for the hint, why there is no start. Returns the exit code
 * that goes with the error. */
ended refuse(const cb_error *e);

/* The signals that end a worker. They are waited for, never handled: no code runs in a place where
 * little is allowed. */
typedef struct {
    sigset_t ending;
} signals;

/* Blocks them in this thread and in all that it starts, so call it before any other thread is
 * there. SIGHUP is one of them (a terminal was closed; there is nothing to reload) unless it is
 * ignored already, as nohup does. SIGPIPE is ignored: a peer that is gone is an error of a call. */
void signals_init(signals *s);

/* The next of them, which is then gone, or 0 after so many seconds; below 0 waits for ever. */
int signals_wait(const signals *s, double seconds);

/* Starts a worker, works and drains. Returns when nothing of it is left. When handlers still run it
 * cannot return, since their threads use what it would free: then it ends the process. */
ended serve(const config *c, log_sink *log, const signals *s);

typedef struct {
    const char *process_id;   /* NULL: every process that has not ended, */
    const char *process_type; /* of this type; NULL: of all */
    bool json;
} replay_request;

/* --replay: would this code go on with the processes that are there? Loads the handler sets,
 * reads the histories, and compares them with the code: executes no step and writes nothing.
 * Prints a line for each process that would diverge, and a summary. ENDED_CLEAN when none would;
 * what cannot be asked (a type that is not here, a process that is not there) is a usage error. */
ended replay(const config *c, const replay_request *request, const signals *s);

#endif
