/* Random processes against a model of what may happen: DESIGN 4 and 8, STP.3 to STP.14. */
#include <criterion/criterion.h>

#include "script_play.h"

Test(random, whatever_dies_or_comes_late_a_process_does_what_its_script_and_its_operators_allow)
{
    script_play(10);
}
