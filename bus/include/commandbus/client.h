/* The front door for programs that ask the bus for something: send commands and batches, start
 * processes and respond to them, look things up, operate.
 *
 *     connections            db.h
 *     send, batches          send.h, batch.h
 *     start, respond, decide process_request.h; who may respond: responder.h
 *     query                  query.h, process_query.h
 *     operate                tsq.h, fleet.h, purge.h, domain.h, migrate.h
 */
#ifndef COMMANDBUS_CLIENT_H
#define COMMANDBUS_CLIENT_H

#include <commandbus/batch.h>
#include <commandbus/db.h>
#include <commandbus/domain.h>
#include <commandbus/error.h>
#include <commandbus/fleet.h>
#include <commandbus/json.h>
#include <commandbus/migrate.h>
#include <commandbus/process_query.h>
#include <commandbus/process_request.h>
#include <commandbus/purge.h>
#include <commandbus/query.h>
#include <commandbus/responder.h>
#include <commandbus/send.h>
#include <commandbus/tsq.h>
#include <commandbus/uuid.h>
#include <commandbus/version.h>

#endif
