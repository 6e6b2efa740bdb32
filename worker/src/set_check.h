/* Is this manifest one that a worker can trust? */
#ifndef WORKER_SET_CHECK_H
#define WORKER_SET_CHECK_H

#include <commandbus/module.h>

/* `place` says in messages where the manifest comes from. `name` is the one it must have; NULL:
 * any. The ABI is looked at first, and nothing else when it is another. Fails with CB_MISUSE. */
bool set_check(const cb_module *m, const char *place, const char *name, cb_error *e);

#endif
