/* Has no name. */
#include "broken_handler.h"

CB_API extern const cb_module cb_module_manifest;
const cb_module cb_module_manifest = {
    .abi = CB_MODULE_ABI,
    .handlers = handlers,
    .n_handlers = CB_COUNT(handlers),
};
