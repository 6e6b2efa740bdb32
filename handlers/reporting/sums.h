/* What was booked in a month or a period: exact, in minor units. */
#ifndef REPORTING_SUMS_H
#define REPORTING_SUMS_H

#include <commandbus/handler.h>
#include <commandbus/money.h>

/* closing = opening + in − out; in and out are not below zero. */
typedef struct {
    cb_money opening, in, out, closing;
    int64_t count;
} sums;

/* Nothing booked yet: opening is closing. */
sums sums_from(const cb_money *opening);
bool sums_book(sums *s, const cb_money *amount, cb_error *e) CB_NODISCARD;
/* Adds count, in, out, opening_balance and closing_balance; the amounts as texts. */
bool sums_write(const sums *s, json_object *to, cb_error *e) CB_NODISCARD;

#endif
