/* Passing time as a handler should: never past its own, and with an eye on the worker. */
#ifndef SAMPLE_REST_H
#define SAMPLE_REST_H

#include <commandbus/handler.h>

typedef enum {
    REST_DONE,     /* all of it */
    REST_LOST,     /* the outcome does not count any more */
    REST_OVER,     /* the time of this run is up */
    REST_STOPPING, /* the worker wants to end; only if the rest is interruptible */
} rest_end;

rest_end rest(const cb_context *ctx, int64_t ms, bool interruptible);

/* The outcome of a rest that was not REST_DONE. */
cb_outcome rest_outcome(cb_context *ctx, rest_end end);

#endif
