/* Doubles as JSON, so that exactly the same one comes back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields_types.h"

/* As many digits as it needs and no more: 0.1 is what people read.
 *
 * From 1e15 on with a point and without an exponent, for jsonb would make an integer of 1e+20, and json-c
 * the nearest 64 bits of that. */
static void print_double(double number, char *text, size_t size)
{
    if (fabs(number) >= 1e15) {
        snprintf(text, size, "%.1f", number);
    } else {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, size, "%.*g", digits, number);
            if (strtod(text, NULL) == number)
                break;
        }
    }
    char *comma = strchr(text, ','); /* the locale's */
    if (comma)
        *comma = '.';
    if (!strpbrk(text, ".e"))
        strcat(text, ".0");
}

const char *field_double_write(field_place *at, const void *member, json_object **ret)
{
    double number = *(const double *)member;
    char text[352]; /* the largest double has 309 digits before the point */

    (void)at;
    if (!isfinite(number))
        return "is not a finite number";
    print_double(number, text, sizeof text - sizeof ".0");
    *ret = json_object_new_double_s(number, text);
    return *ret ? NULL : field_no_memory;
}

const char *field_double_read(field_place *at, json_object *value, void *member)
{
    double number = json_object_get_double(value);
    bool is_double = json_object_is_type(value, json_type_double);

    (void)at;
    if (!is_double && !json_object_is_type(value, json_type_int))
        return "must be a number";
    /* The ends of 64 bits are what json-c makes of an integer that has no room in them. */
    if (!is_double &&
        (json_object_get_int64(value) == INT64_MIN || json_object_get_uint64(value) == UINT64_MAX))
        return "must be a number that keeps its value: write it with a point";
    if (!isfinite(number))
        return "must be a finite number";
    *(double *)member = number;
    return NULL;
}
