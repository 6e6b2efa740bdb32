/* The life of the program once it is configured: start, work, drain. */
#ifndef APP_SERVE_H
#define APP_SERVE_H

#include "config.h"
#include "refuse.h"
#include "signals.h"

/* Returns when nothing of it is left. When handlers still run it cannot return, since their threads use
 * what it would free: then it ends the process. */
ended serve(const config *c, log_sink *log, const signals *s);

#endif
