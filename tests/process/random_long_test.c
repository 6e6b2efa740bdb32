/* The same as random_test.c, for ten minutes or COMMANDBUS_TEST_SECONDS. */
#include <criterion/criterion.h>

#include "script_play.h"

Test(random_long,
     whatever_dies_or_comes_late_a_process_does_what_its_script_and_its_operators_allow)
{
    script_play(600);
}
