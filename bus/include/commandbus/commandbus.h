/* All of the bus in one include. C11; from C++ wrap it in extern "C". */
#ifndef COMMANDBUS_H
#define COMMANDBUS_H

#include <commandbus/batch.h>
#include <commandbus/db.h>
#include <commandbus/domain.h>
#include <commandbus/error.h>
#include <commandbus/fleet.h>
#include <commandbus/handler.h>
#include <commandbus/host.h>
#include <commandbus/json.h>
#include <commandbus/lease.h>
#include <commandbus/listen.h>
#include <commandbus/migrate.h>
#include <commandbus/module.h>
#include <commandbus/outcome.h>
#include <commandbus/process_query.h>
#include <commandbus/process_request.h>
#include <commandbus/process_row.h>
#include <commandbus/purge.h>
#include <commandbus/query.h>
#include <commandbus/receive.h>
#include <commandbus/responder.h>
#include <commandbus/route.h>
#include <commandbus/send.h>
#include <commandbus/settle.h>
#include <commandbus/tsq.h>
#include <commandbus/uuid.h>
#include <commandbus/version.h>

#endif
