/* libcurl's handles between calls, with their open connections. A call takes one and gives it back:
 * there are never more than there were calls at once. They belong to the client and not to threads,
 * so that closing a set frees them all, whichever threads have called. */
#ifndef HANDLER_HTTP_POOL_H
#define HANDLER_HTTP_POOL_H

#include <curl/curl.h>
#include <pthread.h>
#include <stddef.h>

typedef struct {
    pthread_mutex_t lock;
    CURL **idle; /* the last one given back is the next one taken: its connection is the freshest */
    size_t n, room;
} http_pool;

void http_pool_init(http_pool *p);
void http_pool_done(http_pool *p);
/* NULL without memory. */
CURL *http_pool_take(http_pool *p);
void http_pool_give(http_pool *p, CURL *handle);

#endif
