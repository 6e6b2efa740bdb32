/* How often, as people write it. */
#include "frequency.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static const double most_per_second = 1e6;

static const struct {
    const char *name;
    double seconds;
} units[] = { { "/s", 1 }, { "/m", 60 }, { "/h", 3600 }, { "/d", 86400 } };

enum {
    N_UNITS = sizeof units / sizeof *units
};

/* Digits and a point only: nothing negative, no exponents, neither nan nor infinity. */
static bool take_number(const char *text, const char **end, double *value)
{
    size_t length = strspn(text, "0123456789.");
    char *parsed = NULL;

    if (length == 0 || length > 20 || !isdigit((unsigned char)*text))
        return false;
    *value = strtod(text, &parsed);
    *end = text + length;
    return parsed == *end;
}

bool frequency_parse(const char *text, double *per_second, cb_error *e)
{
    const char *unit = "";
    double value = 0;

    if (take_number(text, &unit, &value)) {
        for (size_t i = 0; i < N_UNITS; i++) {
            double each_second = value / units[i].seconds;
            if (strcmp(unit, units[i].name) != 0)
                continue;
            if (each_second <= 0 || each_second > most_per_second)
                return cb_fail(e, CB_MISUSE,
                               "'%.40s' is too %s: more than 0, and 1000000/s at most", text,
                               each_second > 0 ? "much" : "little");
            *per_second = each_second;
            return true;
        }
    }
    return cb_fail(e, CB_MISUSE, "invalid rate '%.40s'; use 20/s, 90/m, 5000/h or 100000/d", text);
}

bool frequency_read(const char *text, void *per_second, cb_error *e)
{
    return frequency_parse(text, per_second, e);
}

const char *frequency_number(double value, char *buffer, size_t size)
{
    double magnitude = fabs(value);
    int digits = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : magnitude >= 0.0995 ? 2 : 4;
    int length = snprintf(buffer, size, "%.*f", digits, value);

    if (digits == 0 || length < 0 || (size_t)length >= size)
        return buffer;
    while (length > 0 && buffer[length - 1] == '0')
        buffer[--length] = '\0';
    if (length > 0 && buffer[length - 1] == '.')
        buffer[--length] = '\0';
    if (strcmp(buffer, "-0") == 0)
        snprintf(buffer, size, "0");
    return buffer;
}

const char *frequency_format(double per_second, char *buffer, size_t size)
{
    size_t unit = 0;

    while (unit + 1 < N_UNITS && per_second * units[unit].seconds < 0.1 && per_second > 0)
        unit++;
    frequency_number(per_second * units[unit].seconds, buffer, size);
    text_append(buffer, size, "%s", units[unit].name);
    return buffer;
}
