/* The smallest program that uses the installed process runtime: a state, and money in it. */
#include <commandbus/process.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    cb_money amount;
} payment;

CB_FIELDS(payment_fields, payment, CB_FIELD(payment, amount, CB_MONEY));

int main(void)
{
    payment *pay = cb_fields_new(&payment_fields);
    json_object *state = NULL;
    cb_error e;

    if (!pay || !cb_fields_check(&payment_fields, &e) ||
        !cb_money_parse("12.30", "EUR", &pay->amount, &e) ||
        !(state = cb_fields_write(&payment_fields, pay)))
        return 1;
    puts(json_object_to_json_string(state));
    int ok = strstr(json_object_to_json_string(state), "\"12.30\"") != NULL;
    json_object_put(state);
    cb_fields_free(&payment_fields, pay);
    return ok ? 0 : 1;
}
