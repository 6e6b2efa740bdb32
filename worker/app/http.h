/* Health and metrics over HTTP, on one thread of its own, and the routes of handler sets, on
 * others; on one port, or each on their own. */
#ifndef APP_HTTP_H
#define APP_HTTP_H

#include <commandbus/error.h>
#include <commandbus/event.h>
#include <commandbus/owned.h>
#include <stdbool.h>
#include <stddef.h>

/* Whom the routes ask. Called on the thread of the server, while others work. */
typedef struct {
    bool (*is_ready)(void *arg, char *reason, size_t size);
    /* The caller frees *ret; the server adds its own. */
    bool (*metrics)(void *arg, char **ret, cb_error *e);
    void *arg; /* borrowed */
} http_source;

struct api;

/* Borrowed for the call, except for what the source says, and the api. */
typedef struct {
    const char *bind; /* an IPv4 or IPv6 address */
    int port;         /* 0: any that is free */
    /* Who reads /metrics or asks a route must know what it holds; NULL: anybody may. */
    const char *token_file;
    /* Who answers processes must know what this one holds instead; NULL: nobody may. */
    const char *responder_token_file;
    http_source source;
    struct api *api; /* routes of handler sets; belongs to the server from then on. NULL: none */
    bool splits_api; /* they have a port of their own, and connections that probes do not share */
    int api_port;    /* that one; 0: any that is free */
    double request_seconds; /* for a request to be complete, and for its answer to be read */
    cb_event_fn *on_event;  /* or NULL; from any thread */
    void *on_event_arg;
} http_options;

typedef struct http http;

/* Listens and answers from then on; options->api is adopted even when it fails. CB_MISUSE for an
 * address that is none or not ours, a port in use and a token that cannot be read. */
bool http_open(const http_options *options, http **ret, cb_error *e) CB_NODISCARD;
/* "127.0.0.1:9464" or "[::1]:9464". Borrowed. */
const char *http_address(const http *h);
/* Of the routes, when they have a port of their own; else NULL. */
const char *http_api_address(const http *h);
/* Takes no more and waits for routes that run, whom the database keeps waiting for at most so
 * many seconds; then until everybody has got their answer. Probes of old connections are still
 * answered. NULL is fine. */
void http_stop(http *h, double seconds);
/* What http_stop waits for is to wait no more than that. From any thread. NULL is fine. */
void http_hurry(http *h, double seconds);
/* Waits for routes that run, then ends its threads: the source is not asked any more. */
void http_free(http *h);
DEFINE_OWNED(http, http_free)

#endif
