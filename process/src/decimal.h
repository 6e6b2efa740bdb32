/* Decimal numbers as text: what amounts and rates share. */
#ifndef PROCESS_DECIMAL_H
#define PROCESS_DECIMAL_H

#include <commandbus/money.h>

enum {
    DECIMAL_MAX_SCALE = 18
};

/* Digits as written, the scale as many as stand behind the point: "1.50" is { 150, 2 }. NULL, or what is
 * wrong with the text (static storage). */
const char *decimal_read(const char *text, int max_scale, cb_decimal *ret);

/* The scale must be 0 to 18. */
void decimal_write(int64_t digits, int scale, char text[CB_DECIMAL_TEXT]);

/* 10^n, n 0 to 18. */
int64_t power_of_ten(int n);

#endif
