/* Days as the commands write them: 2024-02-29. */
#ifndef REPORTING_PERIOD_H
#define REPORTING_PERIOD_H

#include <stdbool.h>

/* Four digits, two, two, and a day that there is. */
bool is_day(const char *text);

#endif
