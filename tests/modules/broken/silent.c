/* Its open() fails and does not say why. */
#include "broken_handler.h"

static bool refuse(cb_error *e)
{
    (void)e;
    return false;
}

CB_MODULE(silent, .handlers = handlers, .n_handlers = CB_COUNT(handlers), .open = refuse);
