/* The routes. Probes stay open to everybody: a kubelet brings no token. */
#include "http_route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void http_answer_text(http_answer *ret, unsigned status, const char *text)
{
    size_t n = strlen(text);

    *ret = (http_answer){ .status = status, .type = "text/plain; charset=utf-8" };
    ret->body = malloc(n + 2);
    if (ret->body) {
        memcpy(ret->body, text, n);
        memcpy(ret->body + n, "\n", 2);
    }
}

/* That this thread answers is all there is to say. A worker that hangs in a handler ends itself. */
static void live(const http_source *source, http_answer *ret)
{
    (void)source;
    http_answer_text(ret, 200, "ok");
}

static void ready(const http_source *source, http_answer *ret)
{
    char reason[256] = "not ready";

    if (source->is_ready(source->arg, reason, sizeof reason))
        http_answer_text(ret, 200, "ok");
    else
        http_answer_text(ret, 503, reason);
}

static void metrics(const http_source *source, http_answer *ret)
{
    cb_error e = { 0 };
    char *text = NULL;

    if (!source->metrics(source->arg, &text, &e)) {
        http_answer_text(ret, 500, e.message);
        return;
    }
    *ret = (http_answer){ .status = 200,
                          .type = "text/plain; version=0.0.4; charset=utf-8",
                          .body = text };
}

static const http_route routes[] = {
    { "/livez", false, live },
    { "/readyz", false, ready },
    { "/metrics", true, metrics },
};

const http_route *http_route_find(const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    }
    return NULL;
}
