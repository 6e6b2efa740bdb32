/* The contest of contention_test.c for a minute each. */
#include <criterion/criterion.h>

#include "contention.h"

Test(contention_long, a_minute_without_deadlock) /* DESIGN 2, section 8 */
{
    test_contention(60, 0);
}

Test(contention_long,
     a_minute_without_deadlock_in_a_domain_with_a_fleet_limit) /* DESIGN 2, section 8 */
{
    test_contention(60, 200);
}
