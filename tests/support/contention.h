/* Workers that get in each other's way on purpose: two that settle, two that extend, one that
 * claims, all on overlapping commands whose leases keep expiring. */
#ifndef TEST_SUPPORT_CONTENTION_H
#define TEST_SUPPORT_CONTENTION_H

/* Hammers for so many seconds, drains what is left, and expects that nothing failed, nothing
 * deadlocked, and each command ended exactly once. */
void test_contention(double seconds, int fleet_limit);

#endif
