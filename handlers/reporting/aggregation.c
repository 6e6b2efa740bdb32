/* StatementDataAggregation {"data_path"}: the sums of what a query found, per account and per month
 * in which something was booked, as a JSON file. Gives back {"result_path"}.
 *
 * Amounts are added in minor units of their currency; a sum that does not fit is refused, never
 * rounded. */
#include "document.h"
#include "report_messages.h"
#include "reporting.h"
#include "store.h"
#include "sums.h"

#include <string.h>

enum {
    MONTH_LENGTH = 7 /* 2024-01 */
};

static void drop_request(aggregation_request **request)
{
    cb_fields_free(&aggregation_request_fields, *request);
}

/* Copies a text under the same name. */
static bool copy(json_object *from, json_object *to, const char *name, cb_error *e)
{
    const char *text = document_text(from, name, e);

    if (text)
        json_object_object_add(to, name, json_object_new_string(text));
    return text != NULL;
}

static bool read_money(json_object *from, const char *name, const char *currency, cb_money *ret,
                       cb_error *e)
{
    const char *text = document_text(from, name, e);

    return text && cb_money_parse(text, currency, ret, e);
}

/* Ends a month: its sums go into the list. */
static bool add_month(json_object *months, const char *month, const sums *s, cb_error *e)
{
    json_object *entry = json_object_new_object();

    json_object_array_add(months, entry);
    json_object_object_add(entry, "month", json_object_new_string_len(month, MONTH_LENGTH));
    return sums_write(s, entry, e);
}

/* The transactions come in the order of their days. */
static bool add_transactions(json_object *transactions, const cb_money *opening,
                             json_object *months, sums *whole, cb_error *e)
{
    const char *last = NULL;
    sums month = sums_from(opening);

    *whole = month;
    for (size_t i = 0; i < json_object_array_length(transactions); i++) {
        json_object *transaction = json_object_array_get_idx(transactions, i);
        const char *day = document_text(transaction, "booked_on", e);
        cb_money amount;
        cb_date date;

        if (!day || !read_money(transaction, "amount", opening->currency, &amount, e))
            return false;
        if (!cb_date_parse(day, &date) || (last && strcmp(day, last) < 0))
            return cb_fail(e, CB_DATA, "the days are not days, or not in order");
        if (last && strncmp(day, last, MONTH_LENGTH) != 0) {
            if (!add_month(months, last, &month, e))
                return false;
            month = sums_from(&whole->closing);
        }
        if (!sums_book(&month, &amount, e) || !sums_book(whole, &amount, e))
            return false;
        last = day;
    }
    return !last || add_month(months, last, &month, e);
}

static bool aggregate_account(json_object *from, json_object *to, cb_error *e)
{
    json_object *months = json_object_new_array();
    const char *currency = document_text(from, "currency", e);
    cb_money opening;
    sums whole;

    json_object_object_add(to, "months", months);
    if (!currency || !copy(from, to, "account_id", e) || !copy(from, to, "holder", e) ||
        !copy(from, to, "currency", e) ||
        !read_money(from, "opening_balance", currency, &opening, e))
        return false;
    json_object *transactions = document_list(from, "transactions", e);
    return transactions && add_transactions(transactions, &opening, months, &whole, e) &&
           sums_write(&whole, to, e);
}

static bool aggregate(json_object *from, json_object *to, cb_error *e)
{
    json_object *accounts = document_list(from, "accounts", e), *list = json_object_new_array();

    json_object_object_add(to, "accounts", list);
    if (!accounts || !copy(from, to, "from_date", e) || !copy(from, to, "to_date", e))
        return false;
    for (size_t i = 0; i < json_object_array_length(accounts); i++) {
        json_object *entry = json_object_new_object();
        json_object_array_add(list, entry);
        if (!aggregate_account(json_object_array_get_idx(accounts, i), entry, e))
            return false;
    }
    return true;
}

static cb_outcome make(cb_context *ctx, const cb_command *command, const char *data_path,
                       const file_path *path)
{
    OWNED(json_object) found = NULL;
    OWNED(json_object) sum = json_object_new_object();
    cb_outcome failed;
    cb_error e = { 0 };

    if (!document_read(ctx, command, "data_path", data_path, KIND_QUERY, &found, &failed))
        return failed;
    if (!aggregate(found, sum, &e))
        return document_corrupt(ctx, &e);
    return document_write(ctx, path, sum);
}

cb_outcome statement_data_aggregation(cb_context *ctx, const cb_command *command,
                                      json_object **result)
{
    __attribute__((cleanup(drop_request))) aggregation_request *request = NULL;
    file_path path = path_of(command, KIND_AGGREGATE, "json");
    cb_outcome outcome;
    cb_error e = { 0 };
    bool is_done;

    if (!message_read(&aggregation_request_fields, ctx, (void **)&request, &outcome))
        return outcome;
    if (!store_has(&path, &is_done, &e))
        return store_outcome(ctx, &e);
    if (!is_done && (outcome = make(ctx, command, request->data_path, &path)) != CB_SUCCESS)
        return outcome;
    *result = message_path_reply(path.text);
    return CB_SUCCESS;
}
