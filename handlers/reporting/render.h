/* Renderers: a statement in, the bytes of a file out. The same bytes for the same statement,
 * always: no date, no name of a machine. False: what was written cannot be used. */
#ifndef REPORTING_RENDER_H
#define REPORTING_RENDER_H

#include "statement.h"

#include <stdio.h>

typedef bool render_fn(const statement *s, FILE *out);

render_fn render_html, render_csv, render_pdf;

#endif
