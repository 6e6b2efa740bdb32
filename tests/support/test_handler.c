/* Looking for a handler. */
#include "test_handler.h"

#include <criterion/criterion.h>
#include <string.h>

cb_handler_fn *test_handler(const cb_set *set, const char *command_type)
{
    const cb_module *m = cb_set_module(set);

    for (size_t i = 0; i < m->n_handlers; i++) {
        if (strcmp(m->handlers[i].command_type, command_type) == 0)
            return m->handlers[i].run;
    }
    cr_assert_fail("the set %s has no handler of %s", m->name, command_type);
    return NULL;
}
