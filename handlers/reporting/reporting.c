/* The reporting set: statements of accounts as html, csv or pdf, and the process that makes one.
 *
 * Start reading at report.c (the process), then query.c, aggregation.c, render.c and remove.c (what
 * it sends), and store.c (files that are whole or not there). */
#include "reporting.h"

#include <commandbus/module.h>
#include <commandbus/process.h>

#include "report.h"
#include "report_settings.h"

static const cb_handler handlers[] = {
    { "StatementQuery", statement_query },
    { "StatementDataAggregation", statement_data_aggregation },
    { "StatementRender", statement_render },
    { "StatementRemove", statement_remove },
};

static const cb_process_type *const processes[] = { &statement_report };

CB_MODULE(reporting, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .processes = processes,
          .n_processes = CB_COUNT(processes), .configure = settings_configure,
          .open = settings_open, .close = settings_close);
