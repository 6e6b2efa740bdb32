/* A fleet that keeps, renews, loses and settles leases of domain fx while its limit changes. */
#ifndef TEST_SUPPORT_LIMIT_STRESS_H
#define TEST_SUPPORT_LIMIT_STRESS_H

/* Fails the test when more handlers run than the limit allows, when a place is lost, or when claims
 * stop. */
void test_limit_stress(double seconds);

#endif
