/* What sets about payments check before they call anybody. Each gives CB_SUCCESS when there is
 * nothing to say against it, else the run's outcome with its code. */
#ifndef HANDLER_INPUT_H
#define HANDLER_INPUT_H

#include <commandbus/fields.h>
#include <commandbus/handler.h>

/* Reads the data of the command into a new struct of this table; the caller frees it with
 * cb_fields_free. Wrong types are permanent INVALID_DATA, as is a CB_TEXT that is missing, empty or
 * longer than 200 bytes. `optional`: fields that may be missing, ends with NULL; NULL: none. */
cb_outcome input_read(cb_context *ctx, const cb_fields *fields, const char *const *optional,
                      void **ret);

/* An amount above 0, exact, in a currency of ISO 4217: permanent INVALID_CURRENCY or
 * INVALID_AMOUNT. */
cb_outcome input_money(cb_context *ctx, const char *amount, const char *currency);
/* The same of a JSON text or number. A number is read by its text and never by way of a double:
 * *text is exactly what was sent, borrowed from it. Neither of both: permanent INVALID_DATA. */
cb_outcome input_amount(cb_context *ctx, json_object *amount, const char *currency,
                        const char **text);
/* 1 to 34 letters, digits, - and _: permanent INVALID_ACCOUNT. */
cb_outcome input_account(cb_context *ctx, const char *name, const char *account);
/* A day of the calendar, else permanent INVALID_VALUE_DATE. One that is over everywhere on earth is
 * a business rule: VALUE_DATE_PAST, for it was right when the command was sent. */
cb_outcome input_value_date(cb_context *ctx, const char *day);
/* Whether a day of the calendar is over everywhere on earth. */
bool input_day_is_over(const char *day);
/* Something that an API gave out as an id and that can be part of a path: 1 to 64 letters, digits,
 * - and _. What is booked and what is released are measured by the same. NULL is none. */
bool input_is_reference(const char *text);
/* The same of a command's data: permanent INVALID_REFERENCE. */
cb_outcome input_reference(cb_context *ctx, const char *name, const char *reference);

#endif
