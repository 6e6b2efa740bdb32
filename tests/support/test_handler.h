/* The handlers of a set that the test has loaded. */
#ifndef TEST_SUPPORT_HANDLER_H
#define TEST_SUPPORT_HANDLER_H

#include <commandbus/set.h>

/* Fails the test when the set has none of this type. */
cb_handler_fn *test_handler(const cb_set *set, const char *command_type);

#endif
