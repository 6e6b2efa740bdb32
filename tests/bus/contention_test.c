/* Settlers, extenders and a claimer on the same commands at the same time. A minute of it is in
 * contention_long_test.c. */
#include <criterion/criterion.h>

#include "contention.h"

Test(contention,
     two_settlers_two_extenders_and_a_claimer_end_each_command_once) /* DESIGN 2, section 8 */
{
    test_contention(6, 0);
}

Test(contention, the_same_holds_in_a_domain_with_a_fleet_limit) /* DESIGN 2, section 8 */
{
    test_contention(6, 200);
}
