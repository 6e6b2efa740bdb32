/* The process type StatementReport. */
#ifndef REPORTING_REPORT_H
#define REPORTING_REPORT_H

#include <commandbus/process.h>

extern const cb_process_type statement_report;

#endif
