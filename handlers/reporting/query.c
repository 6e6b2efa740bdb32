/* StatementQuery {"from_date": "2024-01-01", "to_date": "2024-12-31", "account_list": ["ACC-001"]}:
 * the transactions of these accounts in this period as a JSON file. Gives back {"result_path"}.
 *
 * Refused are a period that ends before it begins, account numbers that could not be some, and
 * lists that are too long. An account that is not there is an answer of the business:
 * UNKNOWN_ACCOUNT. */
#include "report_database.h"
#include "report_messages.h"
#include "reporting.h"
#include "store.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_ACCOUNTS = 100,
    LONGEST_ACCOUNT = 34 /* as an IBAN */
};
#define MOST_TRANSACTIONS "200000"

static void drop_request(query_request **request)
{
    cb_fields_free(&query_request_fields, *request);
}

/* Also what makes the list safe to be written as an array for PostgreSQL: no quote, comma or brace
 * is in it. */
static bool is_account(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    static const char also[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t length = text ? strlen(text) : 0;

    return length > 0 && length <= LONGEST_ACCOUNT && strspn(text, also) == length &&
           strchr(letters, text[0]);
}

static bool is_repeated(const account_numbers *list, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(list->items[i], list->items[at]) == 0)
            return true;
    }
    return false;
}

/* CB_SUCCESS when there is nothing to say against it. Account numbers are in no message: their
 * places are. */
static cb_outcome check_accounts(cb_context *ctx, const account_numbers *list)
{
    if (list->n == 0)
        return cb_permanent(ctx, "INVALID_DATA", "account_list must be a list of account numbers");
    if (list->n > MOST_ACCOUNTS)
        return cb_permanent(ctx, "TOO_MANY_ACCOUNTS", "account_list has %zu entries, more than %d",
                            list->n, MOST_ACCOUNTS);
    for (size_t i = 0; i < list->n; i++) {
        if (!is_account(list->items[i]))
            return cb_permanent(ctx, "INVALID_ACCOUNT",
                                "account_list[%zu] must be letters, digits, - and _, at most %d", i,
                                LONGEST_ACCOUNT);
        if (is_repeated(list, i))
            return cb_permanent(ctx, "INVALID_ACCOUNT", "account_list[%zu] is there twice", i);
    }
    return CB_SUCCESS;
}

static cb_outcome check(cb_context *ctx, const query_request *r)
{
    if (!cb_date_is_valid(&r->from_date) || !cb_date_is_valid(&r->to_date))
        return cb_permanent(ctx, "INVALID_PERIOD", "from_date and to_date are required");
    if (cb_date_compare(&r->from_date, &r->to_date) > 0)
        return cb_permanent(ctx, "INVALID_PERIOD", "the period ends before it begins");
    return check_accounts(ctx, &r->account_list);
}

/* {ACC-001,ACC-002}; the caller frees it. */
static char *array_of(const account_numbers *list)
{
    char *text = malloc(MOST_ACCOUNTS * (LONGEST_ACCOUNT + 1) + 3), *end = text;

    if (!text)
        return NULL;
    for (size_t i = 0; i < list->n; i++) {
        *end++ = i ? ',' : '{';
        end = stpcpy(end, list->items[i]);
    }
    strcpy(end, "}");
    return text;
}

static cb_outcome store(cb_context *ctx, const PGresult *found, const file_path *path)
{
    cb_error e = { 0 };

    if (strcmp(PQgetvalue(found, 0, 0), "0") != 0)
        return cb_business_rule(ctx, "UNKNOWN_ACCOUNT", "%s of the accounts are not known",
                                PQgetvalue(found, 0, 0));
    if (PQgetisnull(found, 0, 1))
        return cb_permanent(ctx, "TOO_MANY_TRANSACTIONS",
                            "there are more than " MOST_TRANSACTIONS " transactions: ask for less");
    if (cb_context_lost(ctx))
        return cb_transient(ctx, "LEASE_LOST", "somebody else may run this command now");
    return store_write(path, PQgetvalue(found, 0, 1), (size_t)PQgetlength(found, 0, 1), &e)
               ? CB_SUCCESS
               : store_outcome(ctx, &e);
}

static cb_outcome query(cb_context *ctx, const query_request *r, const file_path *path)
{
    char *accounts = array_of(&r->account_list), from[CB_DATE_TEXT], to[CB_DATE_TEXT];
    const char *const values[] = { accounts, from, to, MOST_TRANSACTIONS };
    OWNED(PGresult) found = NULL;
    cb_outcome failed;

    if (!accounts)
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    cb_date_print(&r->from_date, from);
    cb_date_print(&r->to_date, to);
    bool asked = database_ask(ctx,
                              "SELECT unknown, data FROM reporting.statement_data($1::text[], "
                              "$2::date, $3::date, $4::bigint)",
                              CB_COUNT(values), values, &found, &failed);
    free(accounts);
    return asked ? store(ctx, found, path) : failed;
}

cb_outcome statement_query(cb_context *ctx, const cb_command *command, json_object **result)
{
    __attribute__((cleanup(drop_request))) query_request *request = NULL;
    file_path path = path_of(command, KIND_QUERY, "json");
    cb_outcome outcome;
    cb_error e = { 0 };
    bool is_done;

    if (!message_read(&query_request_fields, ctx, (void **)&request, &outcome))
        return outcome;
    if ((outcome = check(ctx, request)) != CB_SUCCESS)
        return outcome;
    /* What an earlier run has found stays: somebody may have read it. */
    if (!store_has(&path, &is_done, &e))
        return store_outcome(ctx, &e);
    if (!is_done && (outcome = query(ctx, request, &path)) != CB_SUCCESS)
        return outcome;
    *result = message_path_reply(path.text);
    return CB_SUCCESS;
}
