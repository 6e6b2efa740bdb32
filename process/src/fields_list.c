/* Lists: an array of items that belongs to the struct it is in. */
#include <commandbus/fields.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields_types.h"

/* What every CB_LIST_OF(T) is, whatever T. Read and written by its bytes: `T *` is another type
 * than `void *`. */
typedef CB_LIST_OF(void) any_list;

static any_list list_in(const void *member)
{
    any_list list;

    memcpy(&list, member, sizeof list);
    return list;
}

static void list_put(void *member, any_list list)
{
    memcpy(member, &list, sizeof list);
}

static void *item_at(const any_list *list, const cb_field *item, size_t i)
{
    return (char *)list->items + i * item->size;
}

cb_field field_item(const cb_field *list)
{
    return (cb_field){ .name = list->name,
                       .type = list->item_type,
                       .size = list->item_size,
                       .names = list->names,
                       .fields = list->fields };
}

static void list_free(const cb_field *item, any_list list)
{
    for (size_t i = 0; i < list.n; i++)
        field_drop(item, item_at(&list, item, i));
    free(list.items);
}

/* n items of zeros. False without memory. */
static bool list_make(const cb_field *item, size_t n, any_list *ret)
{
    *ret = (any_list){ .items = n ? calloc(n, item->size) : NULL, .n = n };
    return n == 0 || ret->items;
}

bool field_list_equal(const cb_field *field, const void *a, const void *b)
{
    any_list x = list_in(a), y = list_in(b);
    cb_field item = field_item(field);

    if (x.n != y.n)
        return false;
    for (size_t i = 0; i < x.n; i++) {
        if (!field_equal(&item, item_at(&x, &item, i), item_at(&y, &item, i)))
            return false;
    }
    return true;
}

bool field_list_copy(const cb_field *field, void *to, const void *from)
{
    any_list source = list_in(from), copy;
    cb_field item = field_item(field);
    bool ok = true;

    if (field_list_equal(field, to, from))
        return true;
    if (!list_make(&item, source.n, &copy))
        return false;
    for (size_t i = 0; ok && i < copy.n; i++)
        ok = field_copy(&item, item_at(&copy, &item, i), item_at(&source, &item, i));
    list_free(&item, ok ? list_in(to) : copy);
    if (ok)
        list_put(to, copy);
    return ok;
}

void field_list_drop(const cb_field *field, void *member)
{
    cb_field item = field_item(field);

    list_free(&item, list_in(member));
}

static const char *too_many(field_place *at, size_t n)
{
    if (n <= at->field->max_items)
        return NULL;
    snprintf(at->detail, sizeof at->detail, "has %zu items, but may have at most %zu", n,
             at->field->max_items);
    return at->detail;
}

static const char *write_item(field_place *at, const cb_field *item, const void *member,
                              json_object *array)
{
    OWNED(json_object) value = NULL;
    const char *problem = field_write(at, item, member, &value);

    if (!problem && json_object_array_add(array, value) != 0)
        problem = field_no_memory;
    if (!problem)
        json_object_take(&value);
    return problem;
}

const char *field_list_write(field_place *at, const void *member, json_object **ret)
{
    any_list list = list_in(member);
    cb_field item = field_item(at->field);
    const char *problem = too_many(at, list.n);
    OWNED(json_object) array = problem ? NULL : json_object_new_array();

    if (!problem && list.n > 0 && !list.items)
        problem = "has a number of items, but no items";
    if (!problem && !array)
        problem = field_no_memory;
    if (problem)
        return problem;
    at->depth++;
    for (size_t i = 0; !problem && i < list.n; i++) {
        problem = write_item(at, &item, item_at(&list, &item, i), array);
        if (problem)
            field_refused_item(at, problem, i);
    }
    at->depth--;
    if (!problem)
        *ret = json_object_take(&array);
    return problem;
}

static const char *read_items(field_place *at, json_object *array, any_list *list)
{
    cb_field item = field_item(at->field);
    json_object **around = at->unknown;
    const char *problem = NULL;

    at->unknown = NULL; /* items come and go: there is nothing that it could be kept with */
    at->depth++;
    for (size_t i = 0; !problem && i < list->n; i++) {
        problem =
            field_read(at, &item, json_object_array_get_idx(array, i), item_at(list, &item, i));
        if (problem)
            field_refused_item(at, problem, i);
    }
    at->depth--;
    at->unknown = around;
    return problem;
}

const char *field_list_read(field_place *at, json_object *value, void *member)
{
    cb_field item = field_item(at->field);
    any_list list;

    if (!value)
        return NULL;
    if (!json_object_is_type(value, json_type_array))
        return "must be a list or null";
    const char *problem = too_many(at, json_object_array_length(value));
    if (problem)
        return problem;
    if (!list_make(&item, json_object_array_length(value), &list))
        return field_no_memory;
    list_put(member, list); /* also half read: whoever has the member frees it */
    return read_items(at, value, &list);
}

/* ---- for whoever fills one ---- */

static const cb_field *list_field(const cb_fields *fields, const void *record, const void *list)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        if (field->type == CB_LIST && field_in(field, record) == list)
            return field;
    }
    return NULL;
}

void *cb_list_add(const cb_fields *fields, void *record, void *list)
{
    const cb_field *field = list_field(fields, record, list);
    any_list l = list_in(list);

    if (!field || l.n >= field->max_items)
        return NULL;
    cb_field item = field_item(field);
    void *items = realloc(l.items, (l.n + 1) * item.size);
    if (!items)
        return NULL;
    l = (any_list){ items, l.n + 1 };
    list_put(list, l);
    return memset(item_at(&l, &item, l.n - 1), 0, item.size);
}

void cb_list_remove(const cb_fields *fields, void *record, void *list, size_t i)
{
    const cb_field *field = list_field(fields, record, list);
    any_list l = list_in(list);

    if (!field || i >= l.n)
        return;
    if (l.n == 1) {
        cb_list_clear(fields, record, list);
        return;
    }
    cb_field item = field_item(field);
    field_drop(&item, item_at(&l, &item, i));
    l.n--;
    memmove(item_at(&l, &item, i), item_at(&l, &item, i + 1), (l.n - i) * item.size);
    list_put(list, l);
}

void cb_list_clear(const cb_fields *fields, void *record, void *list)
{
    const cb_field *field = list_field(fields, record, list);

    if (!field)
        return;
    field_list_drop(field, list);
    list_put(list, (any_list){ 0 });
}

bool cb_list_copy(const cb_fields *fields, void *record, void *list, const void *from)
{
    const cb_field *field = list_field(fields, record, list);

    return field && list_in(from).n <= field->max_items && field_list_copy(field, list, from);
}
