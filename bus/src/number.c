/* Numbers against the types of C. Most are short, and nothing needs to be converted for them. */
#include "number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has(const char *token, size_t length, char c)
{
    return memchr(token, c, length) != NULL;
}

static bool has_exponent(const char *token, size_t length)
{
    return has(token, length, 'e') || has(token, length, 'E');
}

bool number_is_finite(const char *token, size_t length)
{
    const size_t always_finite = 300; /* digits */

    if (length <= always_finite && !has_exponent(token, length))
        return true;

    /* The decimal point is the locale's for strtod. No memory for one is no reason to refuse. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return true;
    bool finite = isfinite(strtod_l(token, NULL, c));
    freelocale(c);
    return finite;
}

bool number_fits_64_bits(const char *token, size_t length)
{
    const size_t always_fits = 18; /* digits, or one less and a sign */

    if (length <= always_fits || has(token, length, '.') || has_exponent(token, length))
        return true;
    errno = 0;
    if (*token == '-')
        (void)strtoll(token, NULL, 10);
    else
        (void)strtoull(token, NULL, 10);
    return errno != ERANGE;
}
