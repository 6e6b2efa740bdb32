/* What a handler's context holds. One allocation, and one more for effects if there are any. */
#ifndef CB_CONTEXT_H
#define CB_CONTEXT_H

#include <commandbus/host.h>

#include "effects.h"

enum {
    CONTEXT_CODE_BYTES = 200,
    CONTEXT_MESSAGE_BYTES = 1000,
};

struct cb_context {
    const cb_command *command;  /* borrowed */
    const cb_host *host;        /* borrowed, may be NULL */
    void *host_arg;             /* borrowed */
    json_object *data;          /* while the handler runs */
    json_object *result;        /* of a success; holds the text that the settlement borrows */
    effects *effects;           /* NULL until the first one */
    const char *refused_effect; /* static: why the first one was that was; NULL for none */

    /* What the handler said last, with which outcome: it counts only if that one is returned. */
    cb_outcome said;
    double retry_seconds;
    char code[CONTEXT_CODE_BYTES + 1]; /* empty: none */
    char message[CONTEXT_MESSAGE_BYTES + 1];
};

/* Keeps an outcome, its code and its message. */
cb_outcome context_say(cb_context *ctx, cb_outcome outcome, const char *code, const char *fmt, ...)
    CB_PRINTF(4, 5);

/* The JSON text of ctx->result, borrowed from it; NULL when it cannot be one: ctx then says a
 * permanent RESULT_INVALID. */
const char *context_result_text(cb_context *ctx, size_t limit);

#endif
