/* Assertions about the bus and its tables. Macros, so that a failure names the test's own line. */
#ifndef TEST_SUPPORT_EXPECT_H
#define TEST_SUPPORT_EXPECT_H

#include "bus.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The first value of a query, whose text parameters may follow it. */
#define expect_value(conn, expected, ...)                                                      \
    do {                                                                                       \
        char *found_ = test_value((conn), __VA_ARGS__, NULL);                                  \
        cr_assert_str_eq(found_, (expected), "expected '%s', found '%s'", (expected), found_); \
        free(found_);                                                                          \
    } while (0)

#define expect_number(conn, expected, ...)                                                  \
    do {                                                                                    \
        long found_ = test_number((conn), __VA_ARGS__, NULL);                               \
        cr_assert_eq(found_, (long)(expected), "expected %ld, found %ld", (long)(expected), \
                     found_);                                                               \
    } while (0)

/* A statement fails with this SQLSTATE, or succeeds with "00000". */
#define expect_sqlstate(conn, expected, sql)                                                      \
    do {                                                                                          \
        const char *found_ = test_sqlstate((conn), (sql));                                        \
        cr_assert_str_eq(found_, (expected), "expected %s, found %s: %s\n%s", (expected), found_, \
                         (sql), PQerrorMessage(conn));                                            \
    } while (0)

/* A call of the library succeeds, or fails with this code; `e` is the cb_error it was given. */
#define expect_ok(call, e) \
    cr_assert((call), "%s %s: %s", cb_code_name((e).code), (e).sqlstate, (e).message)

#define expect_error(expected, call, e)                                                         \
    do {                                                                                        \
        (e) = (cb_error){ 0 };                                                                  \
        cr_assert(!(call), "%s succeeded", #call);                                              \
        cr_assert_eq((e).code, (expected), "expected %s, found %s: %s", cb_code_name(expected), \
                     cb_code_name((e).code), (e).message);                                      \
    } while (0)

/* Two texts of bus_contents() are the same: nothing changed in between. Frees both. */
#define expect_unchanged(before, after)                              \
    do {                                                             \
        char *was_ = (before), *is_ = (after);                       \
        cr_assert_str_eq(is_, was_, "was:\n%s\nis:\n%s", was_, is_); \
        free(was_);                                                  \
        free(is_);                                                   \
    } while (0)

#endif
