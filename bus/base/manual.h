/* Manual pages in man(7) from the tables that --help prints. A text is UTF-8 and may hold anything:
 * what means something to roff is escaped here. */
#ifndef BASE_MANUAL_H
#define BASE_MANUAL_H

#include "args.h"

/* The title and NAME, whose one line is the sentence `about` without its full stop. */
void manual_begin(FILE *out, const char *program, const char *version, const char *about);

void manual_section(FILE *out, const char *title);
void manual_subsection(FILE *out, const char *title);

/* A paragraph; an empty line in the text begins another. Line ends and indentation do not count. */
void manual_text(FILE *out, const char *fmt, ...) CB_PRINTF(2, 3);

/* Lines as they are, less the indentation that --help gives them. */
void manual_example(FILE *out, const char *lines);

/* How to call it: the words as they are, then the positional arguments of the table. */
void manual_synopsis(FILE *out, const char *words, const arg_spec *specs);

/* A word with its meaning, as in a list of files. `value` may be NULL. */
void manual_item(FILE *out, const char *word, const char *value, const char *meaning);

/* An item for each argument: its help, what it may be, whether it must be given. */
void manual_options(FILE *out, const arg_spec *specs);

void manual_exits(FILE *out, const arg_exit *exits);

#endif
