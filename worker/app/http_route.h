/* What is answered where. */
#ifndef APP_HTTP_ROUTE_H
#define APP_HTTP_ROUTE_H

#include "http.h"

/* Room for the methods of one path. */
#define HTTP_ALLOW_MOST 64

typedef struct {
    unsigned status;
    const char *type;            /* Content-Type; static */
    char *body;                  /* allocated; NULL when there was no memory */
    char allow[HTTP_ALLOW_MOST]; /* the Allow header of a 405, else "" */
} http_answer;

typedef struct {
    const char *path;
    bool guarded; /* needs the token, if there is one */
    void (*answer)(const http_source *source, http_answer *ret);
} http_route;

/* NULL when there is none. Static storage. */
const http_route *http_route_find(const char *path);

/* A short text. `text` is copied and ended with a newline. */
void http_answer_text(http_answer *ret, unsigned status, const char *text);

#endif
