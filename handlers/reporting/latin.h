/* UTF-8 as the fonts that every PDF reader brings can show it. */
#ifndef REPORTING_LATIN_H
#define REPORTING_LATIN_H

#include <stddef.h>

/* Windows-1252, as far as it is Latin-1 or the euro sign; other letters become ?. Cut off at size -
 * 1. Returns out. */
const char *latin_of(const char *utf8, char *out, size_t size);

#endif
