/* Its open() fails and says why. */
#include "broken_handler.h"

#include <stdio.h>
#include <stdlib.h>

static bool refuse(cb_error *e)
{
    cb_fail(e, CB_LOST, "the rate table is empty");
    snprintf(e->hint, sizeof e->hint, "Fill it.");
    return false;
}

static void must_not_be_called(void)
{
    abort();
}

CB_MODULE(refusing, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .open = refuse,
          .close = must_not_be_called);
