/* A stack of idle handles. */
#include "http_pool.h"

#include <stdlib.h>

void http_pool_init(http_pool *p)
{
    *p = (http_pool){ .n = 0 };
    pthread_mutex_init(&p->lock, NULL);
}

void http_pool_done(http_pool *p)
{
    for (size_t i = 0; i < p->n; i++)
        curl_easy_cleanup(p->idle[i]);
    free(p->idle);
    pthread_mutex_destroy(&p->lock);
}

CURL *http_pool_take(http_pool *p)
{
    pthread_mutex_lock(&p->lock);
    CURL *handle = p->n ? p->idle[--p->n] : NULL;
    pthread_mutex_unlock(&p->lock);
    return handle ? handle : curl_easy_init();
}

static CURL **make_room(http_pool *p)
{
    size_t room = p->room ? p->room * 2 : 8;
    CURL **idle = p->n < p->room ? p->idle : realloc(p->idle, room * sizeof(CURL *));

    if (idle && p->n == p->room) {
        p->idle = idle;
        p->room = room;
    }
    return idle;
}

void http_pool_give(http_pool *p, CURL *handle)
{
    curl_easy_reset(handle); /* options go, connections stay */
    pthread_mutex_lock(&p->lock);
    if (make_room(p)) {
        p->idle[p->n++] = handle;
        handle = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    curl_easy_cleanup(handle); /* NULL is fine */
}
