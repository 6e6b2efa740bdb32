/* Signals are waited for, never handled: no code runs in a place where little is allowed. */
#ifndef APP_SIGNALS_H
#define APP_SIGNALS_H

#include <signal.h>

/* The signals that end a worker. */
typedef struct {
    sigset_t ending;
} signals;

/* Blocks them in this thread and in all that it starts, so call it before any other thread is there.
 * SIGHUP is one of them (a terminal was closed; there is nothing to reload) unless it is ignored already,
 * as nohup does. SIGPIPE is ignored: a peer that is gone is an error of a call. */
void signals_init(signals *s);

/* The next of them, which is then gone, or 0 after so many seconds; below 0 waits for ever. */
int signals_wait(const signals *s, double seconds);

#endif
