/* Exact money: whole minor units of a currency, never a double.
 *
 *     cb_money amount, credit;
 *     cb_decimal rate;
 *
 *     if (!cb_money_parse("100.00", "EUR", &amount, e) || !cb_decimal_parse("1.0837", &rate, e) ||
 *         !cb_money_convert(&amount, &rate, "USD", &credit, e))
 *         return false;
 *
 * What does not fit into 64 bits is refused, never wrapped or cut off. Every failure is
 * CB_INVALID_DATA and leaves *ret as it was; *ret may be one of the arguments. Thread-safety:
 * these are values. */
#ifndef COMMANDBUS_MONEY_H
#define COMMANDBUS_MONEY_H

#include <commandbus/api.h>
#include <commandbus/error.h>
#include <stdbool.h>
#include <stdint.h>

/* 12.34 EUR is { 1234, "EUR" }, 12 JPY { 12, "JPY" }. All zeros: no money at all, not even none
 * of it. */
typedef struct {
    int64_t minor;
    char currency[4]; /* ISO 4217, upper case */
} cb_money;

/* digits / 10^scale: a rate of 1.0837 is { 10837, 4 }. It keeps its zeros: 1.10 is not written
 * as 1.1. */
typedef struct {
    int64_t digits;
    int scale; /* 0 to 18 */
} cb_decimal;

enum {
    CB_DECIMAL_TEXT = 24 /* bytes that the longest text needs, with its NUL */
};

/* How many digits the currency has behind the point; -1: ISO 4217 has no such currency, or not
 * any more. */
CB_API int cb_currency_exponent(const char *code);

/* "12.34", "-0.05", "12": digits, at most as many behind the point as the currency has, no sign
 * but a minus, no leading zeros, no exponent, no blanks. */
CB_API bool cb_money_parse(const char *amount, const char *currency, cb_money *ret,
                           cb_error *e) CB_NODISCARD;
/* The amount alone, with all digits of its currency: "12.30". False: there is no such currency. */
CB_API bool cb_money_print(const cb_money *money, char text[CB_DECIMAL_TEXT]) CB_NODISCARD;

/* Of one currency only: others do not add up. */
CB_API bool cb_money_add(const cb_money *a, const cb_money *b, cb_money *ret,
                         cb_error *e) CB_NODISCARD;
CB_API bool cb_money_subtract(const cb_money *a, const cb_money *b, cb_money *ret,
                              cb_error *e) CB_NODISCARD;
/* *ret is below, at or above 0 as a is less than, equal to or more than b. */
CB_API bool cb_money_compare(const cb_money *a, const cb_money *b, int *ret,
                             cb_error *e) CB_NODISCARD;

/* money × factor in the same currency, and money × rate in another one. The exact product is
 * rounded once, to the nearest minor unit; half of one goes to the even neighbour. */
CB_API bool cb_money_multiply(const cb_money *money, const cb_decimal *factor, cb_money *ret,
                              cb_error *e) CB_NODISCARD;
CB_API bool cb_money_convert(const cb_money *money, const cb_decimal *rate, const char *currency,
                             cb_money *ret, cb_error *e) CB_NODISCARD;

/* As an amount is written, with up to 18 digits behind the point. */
CB_API bool cb_decimal_parse(const char *text, cb_decimal *ret, cb_error *e) CB_NODISCARD;
/* False: its scale is not 0 to 18. */
CB_API bool cb_decimal_print(const cb_decimal *decimal, char text[CB_DECIMAL_TEXT]) CB_NODISCARD;

#endif
