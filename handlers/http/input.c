/* Checks of what commands bring. Values are in no message: they may be account numbers. */
#include "input.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    LONGEST_TEXT = 200,
    LONGEST_ACCOUNT = 34, /* as an IBAN */
    LONGEST_REFERENCE = 64
};

static const char word_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

static bool is_among(const char *name, const char *const *names)
{
    for (; names && *names; names++) {
        if (strcmp(*names, name) == 0)
            return true;
    }
    return false;
}

static cb_outcome check_texts(cb_context *ctx, const cb_fields *fields, const char *const *optional,
                              const void *record)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *f = &fields->fields[i];
        if (f->type != CB_TEXT)
            continue;
        const char *text = *(char *const *)(const void *)((const char *)record + f->offset);
        if (!text && is_among(f->name, optional))
            continue;
        if (!text || !*text || strlen(text) > LONGEST_TEXT)
            return cb_permanent(ctx, "INVALID_DATA", "\"%s\" must be a text of 1 to %d bytes",
                                f->name, LONGEST_TEXT);
    }
    return CB_SUCCESS;
}

cb_outcome input_read(cb_context *ctx, const cb_fields *fields, const char *const *optional,
                      void **ret)
{
    void *record = cb_fields_new(fields);
    cb_error e = { 0 };

    if (!record)
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    cb_outcome outcome = cb_fields_read(fields, record, cb_context_data(ctx), NULL, &e)
                             ? check_texts(ctx, fields, optional, record)
                             : cb_permanent(ctx, "INVALID_DATA", "%s", e.message);
    if (outcome == CB_SUCCESS)
        *ret = record;
    else
        cb_fields_free(fields, record);
    return outcome;
}

cb_outcome input_money(cb_context *ctx, const char *amount, const char *currency)
{
    cb_money money;
    cb_error e = { 0 };

    if (cb_currency_exponent(currency) < 0)
        return cb_permanent(ctx, "INVALID_CURRENCY", "ISO 4217 has no such currency");
    if (!cb_money_parse(amount, currency, &money, &e))
        return cb_permanent(ctx, "INVALID_AMOUNT",
                            "the amount must be digits, at most %d of them behind the point",
                            cb_currency_exponent(currency));
    return money.minor > 0 ? CB_SUCCESS
                           : cb_permanent(ctx, "INVALID_AMOUNT", "the amount must be above 0");
}

/* json-c keeps the text of a number that it read; what it makes of it as a double is not asked
 * for. */
cb_outcome input_amount(cb_context *ctx, json_object *amount, const char *currency,
                        const char **text)
{
    if (!json_object_is_type(amount, json_type_string) &&
        !json_object_is_type(amount, json_type_int) &&
        !json_object_is_type(amount, json_type_double))
        return cb_permanent(ctx, "INVALID_DATA", "\"amount\" must be a text or a number");
    *text = json_object_get_string(amount);
    return input_money(ctx, *text, currency);
}

static bool is_word(const char *text, size_t longest)
{
    size_t n = strspn(text, word_letters);

    return n > 0 && n <= longest && !text[n];
}

cb_outcome input_account(cb_context *ctx, const char *name, const char *account)
{
    return is_word(account, LONGEST_ACCOUNT)
               ? CB_SUCCESS
               : cb_permanent(ctx, "INVALID_ACCOUNT", "%s must be 1 to %d letters, digits, - and _",
                              name, LONGEST_ACCOUNT);
}

bool input_is_reference(const char *text)
{
    return text && is_word(text, LONGEST_REFERENCE);
}

cb_outcome input_reference(cb_context *ctx, const char *name, const char *reference)
{
    return input_is_reference(reference)
               ? CB_SUCCESS
               : cb_permanent(ctx, "INVALID_REFERENCE",
                              "%s must be 1 to %d letters, digits, - and _", name,
                              LONGEST_REFERENCE);
}

/* strptime alone would take "2030-1-1" and the 31st of February. */
static bool is_day(const char *text)
{
    struct tm day = { 0 };
    const char *end = strptime(text, "%Y-%m-%d", &day);
    char again[16];

    if (!end || *end)
        return false;
    day.tm_hour = 12;
    timegm(&day);
    return strftime(again, sizeof again, "%Y-%m-%d", &day) && strcmp(again, text) == 0;
}

bool input_day_is_over(const char *day)
{
    time_t latest_place = time(NULL) - (time_t)12 * 3600; /* UTC-12 */
    struct tm now;
    char today[16];

    gmtime_r(&latest_place, &now);
    strftime(today, sizeof today, "%Y-%m-%d", &now);
    return strcmp(day, today) < 0;
}

cb_outcome input_value_date(cb_context *ctx, const char *day)
{
    if (!is_day(day))
        return cb_permanent(ctx, "INVALID_VALUE_DATE", "valueDate must be a day: 2030-01-31");
    return input_day_is_over(day)
               ? cb_business_rule(ctx, "VALUE_DATE_PAST", "the value date is over")
               : CB_SUCCESS;
}
