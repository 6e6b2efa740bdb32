/* Built for another ABI: nothing behind it means what it seems to. */
#include <commandbus/module.h>

CB_API extern const cb_module cb_module_manifest;
const cb_module cb_module_manifest = {
    .abi = CB_MODULE_ABI + 1,
    .name = (const char *)1,
    .handlers = (const cb_handler *)1,
    .n_handlers = 1000,
};
