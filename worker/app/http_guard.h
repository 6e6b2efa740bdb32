/* Who is connected, and who has to go. Somebody new is always let in: when there is no room, the
 * connection that has kept us waiting longest makes some, and before all others that of an
 * address which holds more than a quarter of the room. Nobody takes for ever with a request
 * either, or with reading an answer, however busy they look. */
#ifndef APP_HTTP_GUARD_H
#define APP_HTTP_GUARD_H

#include <commandbus/error.h>
#include <commandbus/event.h>
#include <commandbus/owned.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef enum {
    GUEST_ASKING,  /* its request is not complete, or has not begun */
    GUEST_WAITING, /* for us */
    GUEST_READING, /* the answer, which is on its way */
} guest_state;

typedef struct {
    size_t most;           /* connections; room for as many again, of those that are being closed */
    double seconds;        /* for a request to be complete, and for an answer to be read */
    cb_event_fn *on_event; /* told now and then how many had to go; NULL: nobody */
    void *on_event_arg;
} http_guard_options;

typedef struct http_guard http_guard;
typedef struct http_guest http_guest;

/* Since the start. */
typedef struct {
    size_t connections; /* now */
    uint64_t slow;      /* closed: their time was over */
    uint64_t crowded;   /* closed: others needed the room */
} http_guard_figures;

/* Starts a thread that sees to it. */
bool http_guard_open(const http_guard_options *options, http_guard **ret, cb_error *e) CB_NODISCARD;
/* Everybody has left. */
void http_guard_free(http_guard *g);
DEFINE_OWNED(http_guard, http_guard_free)

/* A connection, from when it is accepted until before its socket is closed. Who has to go has
 * the socket shut down; closing it stays the server's. NULL when there are twice as many as
 * there should be. */
http_guest *http_guard_enter(http_guard *g, int fd, const struct sockaddr *address);
void http_guard_leave(http_guard *g, http_guest *guest);

/* What the connection does from now on. A guest of NULL is fine. */
void http_guard_mark(http_guard *g, http_guest *guest, guest_state state);

http_guard_figures http_guard_count(http_guard *g);

#endif
