/* Claims, renewals, timeouts, lost answers, silent holders and changing limits, all at once. */
#include "limit_stress.h"

#include <criterion/criterion.h>

Test(fleet_limit_stress, never_over_the_limit_and_no_place_lost) /* section 8.2, 8.7 */
{
    test_limit_stress(5);
}
