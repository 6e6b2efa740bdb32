/* What was booked in a month or a period. */
#include "sums.h"

sums sums_from(const cb_money *opening)
{
    sums s = { .opening = *opening, .in = *opening, .out = *opening, .closing = *opening };

    s.in.minor = s.out.minor = 0;
    return s;
}

bool sums_book(sums *s, const cb_money *amount, cb_error *e)
{
    s->count++;
    if (!cb_money_add(&s->closing, amount, &s->closing, e))
        return false;
    return amount->minor < 0 ? cb_money_subtract(&s->out, amount, &s->out, e)
                             : cb_money_add(&s->in, amount, &s->in, e);
}

bool sums_write(const sums *s, json_object *to, cb_error *e)
{
    const struct {
        const char *name;
        const cb_money *money;
    } amounts[] = {
        { "opening_balance", &s->opening },
        { "in", &s->in },
        { "out", &s->out },
        { "closing_balance", &s->closing },
    };

    json_object_object_add(to, "count", json_object_new_int64(s->count));
    for (size_t i = 0; i < CB_COUNT(amounts); i++) {
        char text[CB_DECIMAL_TEXT];
        if (!cb_money_print(amounts[i].money, text))
            return cb_fail(e, CB_DATA, "there is no such currency");
        json_object_object_add(to, amounts[i].name, json_object_new_string(text));
    }
    return true;
}
