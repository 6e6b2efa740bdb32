/* Events as lines. The table below is the vocabulary. */
#include "log.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "log_line.h"

typedef enum {
    FIELD_TEXT,
    FIELD_INTEGER,
    FIELD_REAL,
} field_kind;

typedef struct {
    const char *name;
    field_kind kind;
    size_t at;
    size_t most; /* bytes of a text, escaped; chosen so that a line of all of them fits */
} field;

#define TEXT(f, bytes)                               \
    {                                                \
#f, FIELD_TEXT, offsetof(cb_event, f), bytes \
    }
#define INTEGER(f)                                  \
    {                                               \
#f, FIELD_INTEGER, offsetof(cb_event, f), 0 \
    }
#define REAL(f)                                  \
    {                                            \
#f, FIELD_REAL, offsetof(cb_event, f), 0 \
    }

static const size_t longest_name = 64;

static const field fields[] = {
    TEXT(domain, 128),       TEXT(command_id, 40),  TEXT(correlation_id, 64),
    TEXT(command_type, 128), TEXT(process_id, 40),  TEXT(process_type, 128),
    TEXT(step, 96),          TEXT(status, 24),      INTEGER(lease_no),
    INTEGER(attempt),        INTEGER(max_attempts), TEXT(outcome, 32),
    TEXT(verdict, 32),       TEXT(error_code, 128), TEXT(error, 1024),
    TEXT(hint, 512),         REAL(took_ms),         REAL(retry_seconds),
    INTEGER(count),          INTEGER(slots),        INTEGER(in_flight),
    INTEGER(signal),         TEXT(connection, 32),  TEXT(set, 96),
    TEXT(profile, 192),      TEXT(version, 64),     TEXT(address, 96),
    TEXT(file, 384),
};

static void add_field(log_line *line, const field *f, const cb_event *event)
{
    const void *at = (const char *)event + f->at;

    switch (f->kind) {
    case FIELD_TEXT: {
        const char *text = *(const char *const *)at;
        if (text && *text) /* an error without SQLSTATE or hint */
            log_line_text(line, f->name, text, f->most);
        break;
    }
    case FIELD_INTEGER: {
        int64_t number = *(const int64_t *)at;
        if (number != 0)
            log_line_integer(line, f->name, number);
        break;
    }
    case FIELD_REAL: {
        double number = *(const double *)at;
        if (number < 0 || number > 0)
            log_line_real(line, f->name, number);
        break;
    }
    }
}

void log_event(const cb_event *event, void *sink)
{
    const log_sink *to = sink;
    int saved = errno;
    log_line line;

    if (event->level < to->level)
        return;
    log_line_begin(&line, to->format);
    log_line_text(&line, "level", cb_level_name(event->level), longest_name);
    log_line_text(&line, "event", event->name ? event->name : "", longest_name);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        add_field(&line, &fields[i], event);
    log_line_end(&line);
    /* A reader that is gone or full must not stop a worker: such a line is lost. */
    while (write(to->fd, line.bytes, line.length) < 0 && errno == EINTR)
        ;
    errno = saved;
}
