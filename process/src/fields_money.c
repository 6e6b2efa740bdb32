/* Money and decimals as fields: text on the wire, for a JSON number would be a double on its way. */
#include <string.h>

#include "decimal.h"
#include "fields_types.h"

bool field_money_equal(const cb_field *field, const void *a, const void *b)
{
    const cb_money *x = a, *y = b;

    (void)field;
    return x->minor == y->minor && strncmp(x->currency, y->currency, sizeof x->currency) == 0;
}

/* Adds a text to an object. */
static const char *add(json_object *object, const char *key, const char *text)
{
    OWNED(json_object) value = json_object_new_string(text);

    if (!value || json_object_object_add(object, key, value) != 0)
        return field_no_memory;
    json_object_take(&value);
    return NULL;
}

const char *field_money_write(field_place *at, const void *member, json_object **ret)
{
    const cb_money *money = member;
    char amount[CB_DECIMAL_TEXT];

    (void)at;
    if (money->minor == 0 && money->currency[0] == '\0')
        return NULL;
    if (!cb_money_print(money, amount))
        return "has a currency that is none of ISO 4217";

    OWNED(json_object) object = json_object_new_object();
    if (!object || add(object, "amount", amount) || add(object, "currency", money->currency))
        return field_no_memory;
    *ret = json_object_take(&object);
    return NULL;
}

const char *field_money_read(field_place *at, json_object *value, void *member)
{
    json_object *amount = NULL, *currency = NULL;

    (void)at;
    if (!value)
        return NULL;
    if (!json_object_is_type(value, json_type_object) ||
        !json_object_object_get_ex(value, "amount", &amount) ||
        !json_object_object_get_ex(value, "currency", &currency) ||
        !cb_money_parse(field_text_of(amount), field_text_of(currency), member, NULL))
        return "must be money like {\"amount\":\"12.34\",\"currency\":\"EUR\"} or null";
    return NULL;
}

bool field_decimal_equal(const cb_field *field, const void *a, const void *b)
{
    const cb_decimal *x = a, *y = b;

    (void)field;
    return x->digits == y->digits && x->scale == y->scale;
}

const char *field_decimal_write(field_place *at, const void *member, json_object **ret)
{
    char text[CB_DECIMAL_TEXT];

    (void)at;
    if (!cb_decimal_print(member, text))
        return "has a scale that is not 0 to 18";
    return field_string(text, ret);
}

const char *field_decimal_read(field_place *at, json_object *value, void *member)
{
    (void)at;
    if (!cb_decimal_parse(field_text_of(value), member, NULL))
        return "must be a decimal in quotes, like \"1.0837\"";
    return NULL;
}
