/* The payments set: three processes that pay, what they send, and an HTTP API before them.
 *
 * Start reading at step.c (the payment), then workflow.c and manager.c (other ways to write one),
 * submit.c and update.c (commands), api.c and batch.c (HTTP), payment.c (the state). */
#include <commandbus/module.h>

#include "handlers.h"
#include "payment_database.h"
#include "payment_settings.h"
#include "processes.h"

static const cb_handler handlers[] = {
    { "SubmitPayment", submit_payment },
    { "UpdatePaymentStatus", update_payment_status },
};

static const cb_process_type *const processes[] = { &payment_step, &payment_workflow,
                                                    &payment_manager };

static const cb_route routes[] = {
    { "POST", "/api/payments", route_submit },
    { "POST", "/api/payments/batch", route_batch },
    { "GET", "/api/payments/{processId}/status", route_status },
};

static void close_all(void)
{
    database_close();
    settings_close();
}

CB_MODULE(payments, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .processes = processes,
          .n_processes = CB_COUNT(processes), .routes = routes, .n_routes = CB_COUNT(routes),
          .configure = settings_configure, .close = close_all);
