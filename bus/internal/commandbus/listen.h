/* Waiting for the hint that something was sent. Only a hint: whoever listens also polls.
 * Not installed. */
#ifndef COMMANDBUS_LISTEN_H
#define COMMANDBUS_LISTEN_H

#include <commandbus/db.h>
#include <stddef.h>

/* A connection of its own that listens on the channels of some queues. Belongs to one thread,
 * except for cb_listener_wake. */
typedef struct cb_listener cb_listener;

/* Who was called on a queue: a notification has the name of the worker that is to wake up. */
typedef enum {
    CB_NOT_CALLED,     /* nobody was */
    CB_CALLED_ANOTHER, /* somebody else: whoever has looked a while later knows that it came */
    CB_CALLED,         /* we were, or everybody (no name) */
} cb_call;

/* Connects and listens for `worker` (NULL: for no name). Fails like cb_db_open. Does not yet know
 * whether notifications arrive. */
CB_API bool cb_listener_open(const char *url, const char *worker, const char *const *queues,
                             size_t n, cb_listener **ret, cb_error *e) CB_NODISCARD;
CB_API void cb_listener_free(cb_listener *l);
DEFINE_OWNED(cb_listener, cb_listener_free)

/* Sends itself a notification and waits for it: true when this connection really hears (a pooler in
 * transaction mode, for one, loses them). *heard false with true returned: it does not. */
CB_API bool cb_listener_prove(cb_listener *l, int timeout_ms, bool *heard,
                              cb_error *e) CB_NODISCARD;

/* Waits until something was sent, cb_listener_wake was called or timeout_ms (-1: no end) passed.
 * Sets calls[i] for each queue i (in the order of cb_listener_open) to who was called since the
 * last time. *any tells whether anybody was on one of them. */
CB_API bool cb_listener_wait(cb_listener *l, int timeout_ms, cb_call *calls, bool *any,
                             cb_error *e) CB_NODISCARD;

/* Ends a cb_listener_wait that another thread is in. Safe from any thread while l lives. */
CB_API void cb_listener_wake(cb_listener *l);

#endif
