/* Reading the data of a command, field by field; the first thing wrong is remembered.
 *
 *     fields f = fields_of(ctx);
 *     int64_t ms = field_integer(&f, "ms", 0, 60000);
 *     if (f.problem[0])
 *         return fields_refuse(&f, ctx);
 *
 * Fields that nobody asks for are ignored: senders may be newer than handlers. */
#ifndef SAMPLE_FIELDS_H
#define SAMPLE_FIELDS_H

#include <commandbus/handler.h>

typedef struct {
    json_object *data; /* borrowed from the context */
    char problem[200]; /* empty while all is well */
} fields;

fields fields_of(cb_context *ctx);

/* False when it is missing or null. */
bool field_is_there(const fields *f, const char *name);

/* A text that is not empty. Borrowed from the data; "" after a problem. */
const char *field_text(fields *f, const char *name);
const char *field_text_or(fields *f, const char *name, const char *otherwise);

/* A whole number from least to most. */
int64_t field_integer(fields *f, const char *name, int64_t least, int64_t most);
int64_t field_integer_or(fields *f, const char *name, int64_t least, int64_t most,
                         int64_t otherwise);

/* Seconds, with a fraction or without. */
double field_seconds_or(fields *f, const char *name, double otherwise);

bool field_flag_or(fields *f, const char *name, bool otherwise);

/* Remembers a problem, unless there is one already. */
void fields_object(fields *f, const char *fmt, ...) CB_PRINTF(2, 3);

/* Permanent INVALID_DATA with the problem: no retry makes the data better. */
cb_outcome fields_refuse(const fields *f, cb_context *ctx);

#endif
