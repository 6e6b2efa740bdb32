/* The three ways to pay. */
#ifndef PAYMENTS_PROCESSES_H
#define PAYMENTS_PROCESSES_H

#include <commandbus/process.h>

extern const cb_process_type payment_step, payment_workflow, payment_manager;

#endif
