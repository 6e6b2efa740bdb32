/* The same as fleet_limit_stress for three minutes. */
#include "limit_stress.h"

#include <criterion/criterion.h>

Test(fleet_limit_stress_long, never_over_the_limit_and_no_place_lost) /* section 8.2, 8.7 */
{
    test_limit_stress(180);
}
