/* Sending many commands: in chunks, with progress, over a lost connection. */
#ifndef CLI_SENDER_H
#define CLI_SENDER_H

#include "progress.h"

#include <commandbus/send.h>

#define SENDER_CHUNK ((size_t)1000) /* commands in one transaction */

typedef struct {
    cli *c;
    progress bar;
    size_t sent; /* durable so far, over all calls */
} sender;

/* Sends n more. Gives an id to each command that has none (written to ids[i], which must outlive the
 * commands), so that after a lost connection it can look which chunk is there and go on. An
 * interruption is no failure: then s->sent tells how far it came. */
bool sender_send(sender *s, cb_send *commands, size_t n, cb_uuid *ids, cb_error *e);

#endif
