/* The domains of `commandbus top`: figures with rates, a trend and a bar. */
#ifndef CLI_TOP_TABLE_H
#define CLI_TOP_TABLE_H

#include "fleet_view.h"
#include "rates.h"

void top_print_domains(FILE *out, const fleet_view *view, const rates *r, bool colour);

/* Rows as a JSON array on one line; with rates as in_per_second and out_per_second unless r is NULL. */
void top_write_rows(FILE *out, const cb_rows *rows, const rates *r);

#endif
