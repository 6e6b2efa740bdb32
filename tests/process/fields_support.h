/* A struct with a field of every type, for the tests of fields. */
#ifndef TEST_FIELDS_SUPPORT_H
#define TEST_FIELDS_SUPPORT_H

#include <commandbus/fields.h>
#include <criterion/criterion.h>
#include <json-c/json_tokener.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

typedef enum {
    RISK_NONE,
    RISK_APPROVED,
    RISK_DECLINED,
} risk_status;

static const char *const risk_names[] = { "NONE", "APPROVED", "DECLINED", NULL };

/* A nested struct, and the items of a list. */
typedef struct {
    char *bank;
    int not_in_the_table;
    cb_date value_date;
    CB_LIST_OF(int64_t) numbers;
} leg;

CB_FIELDS(leg_fields, leg, CB_FIELD(leg, bank, CB_TEXT),
          CB_FIELD_AS(leg, value_date, CB_DATE, "valueDate"),
          CB_FIELD_LIST(leg, numbers, CB_INT, 4));

typedef struct {
    char *account;
    bool approved;
    int retries;
    int not_in_the_table;
    int64_t count;
    double score;
    cb_uuid id;
    int64_t booked_at;
    int risk;
    json_object *extra;
    cb_money amount;
    cb_decimal rate;
    cb_date due;
    leg first;
    CB_LIST_OF(char *) tags;
    CB_LIST_OF(leg) legs;
    CB_LIST_OF(int) history;
} trade;

CB_FIELDS(trade_fields, trade, CB_FIELD_AS(trade, account, CB_TEXT, "debitAccount"),
          CB_FIELD(trade, approved, CB_BOOL), CB_FIELD(trade, retries, CB_INT32),
          CB_FIELD(trade, count, CB_INT), CB_FIELD(trade, score, CB_DOUBLE),
          CB_FIELD(trade, id, CB_UUID), CB_FIELD_AS(trade, booked_at, CB_TIME, "bookedAt"),
          CB_FIELD_ENUM(trade, risk, risk_names), CB_FIELD(trade, extra, CB_JSON),
          CB_FIELD(trade, amount, CB_MONEY), CB_FIELD(trade, rate, CB_DECIMAL),
          CB_FIELD(trade, due, CB_DATE), CB_FIELD_STRUCT(trade, first, &leg_fields),
          CB_FIELD_LIST(trade, tags, CB_TEXT, 5), CB_FIELD_LIST_OF(trade, legs, &leg_fields, 3),
          CB_FIELD_LIST_ENUM(trade, history, risk_names, 3));

static inline void trade_free(trade *t)
{
    cb_fields_free(&trade_fields, t);
}
DEFINE_OWNED(trade, trade_free)

__attribute__((unused)) static inline trade *trade_new(void)
{
    trade *t = cb_fields_new(&trade_fields);

    cr_assert(t);
    return t;
}

__attribute__((unused)) static inline json_object *parsed(const char *text)
{
    json_object *object = json_tokener_parse(text);

    cr_assert(object, "%s", text);
    return object;
}

__attribute__((unused)) static inline bool read_text(trade *t, const char *text, cb_error *e)
{
    OWNED(json_object) object = parsed(text);

    return cb_fields_read(&trade_fields, t, object, NULL, e);
}

#define expect_unsound(said, ...)                                                    \
    do {                                                                             \
        const cb_field list_[] = { __VA_ARGS__ };                                    \
        const cb_fields table_ = { "thing", sizeof(thing), list_, CB_COUNT(list_) }; \
        cb_error e_;                                                                 \
        expect_error(CB_MISUSE, cb_fields_check(&table_, &e_), e_);                  \
        cr_assert(strstr(e_.message, (said)), "%s", e_.message);                     \
    } while (0)

/* Nothing differs from one to the other. */
#define expect_same(a, b)                                                              \
    do {                                                                               \
        json_object *differs_ = NULL;                                                  \
        cr_assert(cb_fields_diff(&trade_fields, (a), (b), &differs_));                 \
        cr_assert_null(differs_, "differs: %s", json_object_to_json_string(differs_)); \
    } while (0)

#endif
