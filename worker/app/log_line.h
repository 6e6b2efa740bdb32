/* One line of the log while it is being put together, in logfmt or JSON. Whatever the values hold, it
 * stays one line of valid UTF-8 without control characters. */
#ifndef APP_LOG_LINE_H
#define APP_LOG_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "log.h"

/* PIPE_BUF of Linux: one write of this much to a pipe is never mixed with another's. */
#define LOG_LINE_MOST 4096

typedef struct {
    log_format format;
    size_t length;
    char bytes[LOG_LINE_MOST];
} log_line;

/* Starts it with the time now, in UTC. */
void log_line_begin(log_line *line, log_format format);

/* A field for which there is no room is left out. A text of more than `most` bytes in its escaped form
 * is cut after a whole character and ends with "…". */
void log_line_text(log_line *line, const char *key, const char *value, size_t most);
void log_line_integer(log_line *line, const char *key, int64_t value);
/* With at most three decimals, whatever the locale. What is no number is left out. */
void log_line_real(log_line *line, const char *key, double value);

/* Ends it, newline included. Nothing may follow. */
void log_line_end(log_line *line);

#endif
