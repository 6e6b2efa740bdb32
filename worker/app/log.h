/* Events as lines on stderr: logfmt or JSON. */
#ifndef APP_LOG_H
#define APP_LOG_H

#include <commandbus/event.h>
#include <stdbool.h>

typedef enum {
    LOG_LOGFMT,
    LOG_JSON,
} log_format;

/* The longest line. PIPE_BUF of Linux: one write of this much to a pipe is never mixed with
 * another's. */
#define LOG_LINE_MOST 4096

typedef struct {
    int fd;
    cb_level level; /* the least that is written */
    log_format format;
} log_sink;

/* One write(2) a line, so that lines of several threads never mix. A cb_event_fn whose arg is a
 * log_sink. Keeps errno. */
void log_event(const cb_event *event, void *sink);

#endif
