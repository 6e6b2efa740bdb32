/* Offers one type twice. */
#include "broken_handler.h"

static const cb_handler twice[] = {
    { "Once", succeed }, { "Fine", succeed }, { "Other", succeed }, { "Fine", succeed }
};

CB_MODULE(duplicate_type, .handlers = twice, .n_handlers = CB_COUNT(twice));
