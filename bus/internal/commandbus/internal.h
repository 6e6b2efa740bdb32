/* The bus with what only our own worker, process runtime and tests use. This folder is not
 * installed, and its symbols have the version COMMANDBUS_PRIVATE: they may change with every
 * build. */
#ifndef COMMANDBUS_INTERNAL_H
#define COMMANDBUS_INTERNAL_H

#include <commandbus/commandbus.h>
#include <commandbus/lease.h>
#include <commandbus/listen.h>
#include <commandbus/process_row.h>
#include <commandbus/receive.h>
#include <commandbus/settle.h>

#endif
