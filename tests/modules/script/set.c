/* Scripts (tests/toys/script.h) as a set, for domain payments. */
#include <commandbus/module.h>

#include "script.h"

static const cb_process_type *const types[] = { &script_type };

CB_MODULE(script, .processes = types, .n_processes = CB_COUNT(types));
