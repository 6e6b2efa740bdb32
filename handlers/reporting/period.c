/* Days as the commands write them. */
#include "period.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool has_form(const char *text)
{
    static const char form[] = "0000-00-00";

    if (!text || strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i]; i++) {
        if (form[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    }
    return true;
}

bool is_day(const char *text)
{
    static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    if (!has_form(text))
        return false;
    int year = atoi(text), month = atoi(text + 5), day = atoi(text + 8);
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] &&
           (is_leap || month != 2 || day < 29);
}
