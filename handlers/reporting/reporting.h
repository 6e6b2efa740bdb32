/* The handlers of the reporting set. What each takes and gives is said in its own file. */
#ifndef REPORTING_H
#define REPORTING_H

#include <commandbus/handler.h>

cb_handler_fn statement_query, statement_data_aggregation, statement_render, statement_remove;

#endif
