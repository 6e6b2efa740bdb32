/* All of the bus in one include. Who wants a part of it takes a front door:
 *
 *     commandbus/client.h    send, batches, start, respond, query, operate
 *     commandbus/handler.h   handlers and handler sets; commandbus/host.h to test them
 *     commandbus/process.h   process types and starting them (libcommandbus-process);
 *                            commandbus/test.h to test them (libcommandbus-test)
 *     commandbus/worker.h    a worker in a program of yours (libcommandbus-worker)
 *
 * Every other header is a piece of one of these. C11; functions have C linkage in C++ too. */
#ifndef COMMANDBUS_H
#define COMMANDBUS_H

#include <commandbus/client.h>
#include <commandbus/handler.h>
#include <commandbus/host.h>

#endif
