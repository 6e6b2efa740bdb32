/* Keeping warnings. */
#include "warnings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void warnings_add(const char *message, const char *hint, void *arg)
{
    warnings *w = arg;
    char **more = realloc(w->texts, (w->n + 2) * sizeof *more);

    if (!more)
        return;
    w->texts = more;
    more[w->n] = strdup(message);
    more[w->n + 1] = strdup(hint ? hint : "");
    if (more[w->n] && more[w->n + 1]) {
        w->n += 2;
        return;
    }
    free(more[w->n]);
    free(more[w->n + 1]);
}

void warnings_log(const warnings *w, log_sink *sink)
{
    for (size_t i = 0; i < w->n; i += 2) {
        const char *hint = w->texts[i + 1];
        const cb_event event = { .level = CB_LEVEL_WARN,
                                 .name = "config.warning",
                                 .error = w->texts[i],
                                 .hint = *hint ? hint : NULL };
        log_event(&event, sink);
    }
}

void warnings_print(const warnings *w)
{
    for (size_t i = 0; i < w->n; i += 2) {
        fprintf(stderr, "commandbus-worker: warning: %s\n", w->texts[i]);
        if (*w->texts[i + 1])
            fprintf(stderr, "  hint: %s\n", w->texts[i + 1]);
    }
}

void warnings_done(warnings *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->texts[i]);
    free(w->texts);
    *w = (warnings){ 0 };
}
