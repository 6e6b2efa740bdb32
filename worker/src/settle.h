/* How outcomes of commands are settled. */
#ifndef WORKER_SETTLE_H
#define WORKER_SETTLE_H

#include "settler.h"

extern const settle_kind command_settling;

#endif
