/* An item of a process from inside: rows as the server reads them. */
#ifndef CB_ITEM_ROWS_H
#define CB_ITEM_ROWS_H

#include <commandbus/process_item.h>

#include "params.h"

/* Elements of an array of a composite type, one after the other. */
typedef struct {
    buffer rows;
    size_t n;
} item_rows;

struct cb_process_item {
    /* As it was given, without what it borrowed: whoever parks the process needs the fence. */
    cb_process_outcome outcome;
    item_rows row;               /* one, of process_outcome */
    item_rows opened, rewritten; /* of process_record */
    item_rows commands;          /* of new_command */
    bool repeats;                /* one of `rewritten` may */
    size_t grown; /* by so many bytes of text, at most, a claim of the process reads more */
    int *consumed;
    size_t n_consumed, room;
    bool failed;
};

/* At most so many bytes jsonb prints for this JSON: it puts blanks behind commas and colons, and
 * writes exponents out. */
size_t json_bytes_printed(const char *json_or_null);

#endif
