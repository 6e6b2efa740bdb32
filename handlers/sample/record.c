/* Record {"account": "ACC-1", "amount": "12.50"}: a booking in sample.ledger, exactly once.
 *
 * The row is an effect: it is written in the transaction that completes the command, so that there
 * is no moment at which one of them is there without the other. Money is a text, never a double.
 * Needs `commandbus migrate --set sample`. Gives back its account and amount. */
#include "sample.h"
#include "sample_fields.h"

#include <string.h>

/* -12.50: digits, then perhaps a point and digits. */
static bool is_amount(const char *text)
{
    static const char digits[] = "0123456789";
    size_t whole, fraction = 1;

    text += *text == '-';
    whole = strspn(text, digits);
    text += whole;
    if (*text == '.') {
        fraction = strspn(text + 1, digits);
        text += 1 + fraction;
    }
    return *text == '\0' && whole > 0 && whole <= 18 && fraction > 0 && fraction <= 18;
}

cb_outcome sample_record(cb_context *ctx, const cb_command *command, json_object **result)
{
    fields f = fields_of(ctx);
    const char *account = field_text(&f, "account");
    const char *amount = field_text(&f, "amount");
    if (!is_amount(amount))
        fields_object(&f, "\"amount\" must be a decimal number in a text, such as \"12.50\"");
    if (f.problem[0])
        return fields_refuse(&f, ctx);

    const char *values[] = { command->command_id.text, account, amount };
    cb_context_effect(ctx,
                      "INSERT INTO sample.ledger (command_id, account, amount) "
                      "VALUES ($1, $2, $3)",
                      CB_COUNT(values), values);

    *result = json_object_new_object();
    json_object_object_add(*result, "account", json_object_new_string(account));
    json_object_object_add(*result, "amount", json_object_new_string(amount));
    return CB_SUCCESS;
}
