/* Events as lines. The table of fields is the vocabulary. */
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "json_escape.h"
#include "utf8.h"

/* ---- one line while it is being put together ----
 *
 * Whatever the values hold, it stays one line of valid UTF-8 without control characters. */

typedef struct {
    log_format format;
    size_t length;
    char bytes[LOG_LINE_MOST];
} log_line;

static const char ellipsis[] = "\u2026";
static const char replacement[] = "\uFFFD"; /* for what is no UTF-8 */

/* Characters beside those of ASCII that could break or turn around a line in somebody's terminal
 * or viewer. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    { 0x80, 0x9F },
    { 0x2028, 0x202E },
    { 0x2066, 0x2069 },
    { 0xFEFF, 0xFEFF },
};

static bool log_is_hidden(uint32_t character)
{
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        if (character >= hidden[i].first && character <= hidden[i].last)
            return true;
    }
    return false;
}

/* Writes the character at *at, escaped, into `out` (which has 8 bytes) and moves *at behind it.
 * logfmt and JSON need the same escapes. */
static size_t log_escape(const char **at, char *out)
{
    uint32_t character = 0;
    size_t n = utf8_decode(*at, &character);

    if (n == 0) {
        ++*at;
        memcpy(out, replacement, sizeof replacement);
        return sizeof replacement - 1;
    }
    const char *start = *at;
    *at += n;
    size_t escaped = n == 1 ? json_escape((unsigned char)*start, out) : 0;
    if (escaped)
        return escaped;
    if (log_is_hidden(character))
        return (size_t)snprintf(out, 8, "\\u%04x", (unsigned)(character & 0xFFFF));
    memcpy(out, start, n);
    return n;
}

static bool log_line_put(log_line *line, const char *bytes, size_t n)
{
    const size_t end = 2; /* room for a brace and the newline */

    if (line->length + n + end > sizeof line->bytes)
        return false;
    memcpy(line->bytes + line->length, bytes, n);
    line->length += n;
    return true;
}

static bool log_line_put_escaped(log_line *line, const char *value, size_t most)
{
    const size_t start = line->length, tail = sizeof ellipsis - 1;
    size_t cut = start; /* the longest beginning after which the ellipsis still fits */

    while (*value) {
        char piece[8];
        size_t n = log_escape(&value, piece);
        if (line->length - start + n > most) {
            line->length = cut;
            return log_line_put(line, ellipsis, tail);
        }
        if (!log_line_put(line, piece, n))
            return false;
        if (line->length - start + tail <= most)
            cut = line->length;
    }
    return true;
}

/* Whether logfmt can do without quotes. */
static bool log_is_plain(const char *value)
{
    const char *c = value;

    while (*c > ' ' && *c < 0x7F && *c != '"' && *c != '=' && *c != '\\')
        c++;
    return *value && !*c;
}

static bool log_line_put_key(log_line *line, const char *key)
{
    char text[64];
    int n = line->format == LOG_JSON
                ? snprintf(text, sizeof text, "%s\"%s\":", line->length > 1 ? "," : "", key)
                : snprintf(text, sizeof text, "%s%s=", line->length > 0 ? " " : "", key);

    return log_line_put(line, text, (size_t)n);
}

/* A value that needs no escaping. */
static void log_line_raw(log_line *line, const char *key, const char *value)
{
    size_t before = line->length;

    if (!log_line_put_key(line, key) || !log_line_put(line, value, strlen(value)))
        line->length = before;
}

/* A field for which there is no room is left out. A text of more than `most` bytes in its
 * escaped form is cut after a whole character and ends with "…". */
static void log_line_text(log_line *line, const char *key, const char *value, size_t most)
{
    size_t before = line->length;
    const char *quote = line->format == LOG_JSON || !log_is_plain(value) ? "\"" : "";

    if (!log_line_put_key(line, key) || !log_line_put(line, quote, strlen(quote)) ||
        !log_line_put_escaped(line, value, most) || !log_line_put(line, quote, strlen(quote)))
        line->length = before;
}

static void log_line_integer(log_line *line, const char *key, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRId64, value);
    log_line_raw(line, key, digits);
}

/* With at most three decimals, whatever the locale. What is no number is left out. */
static void log_line_real(log_line *line, const char *key, double value)
{
    const double largest = 1e15; /* keeps the product within 64 bits */
    char digits[32];

    if (!isfinite(value))
        return;
    value = value > largest ? largest : value < -largest ? -largest : value;
    int64_t thousandths = (int64_t)(value * 1000 + (value < 0 ? -0.5 : 0.5));
    int64_t size = thousandths < 0 ? -thousandths : thousandths;
    int n = snprintf(digits, sizeof digits, "%s%" PRId64 ".%03" PRId64, thousandths < 0 ? "-" : "",
                     size / 1000, size % 1000);
    while (digits[n - 1] == '0')
        digits[--n] = '\0';
    if (digits[n - 1] == '.')
        digits[--n] = '\0';
    log_line_raw(line, key, digits);
}

/* Starts it with the time now, in UTC. */
static void log_line_begin(log_line *line, log_format format)
{
    struct timespec now;
    struct tm utc;
    char day[32], stamp[64];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp, sizeof stamp, "%s.%06ldZ", day, now.tv_nsec / 1000);

    line->format = format;
    line->length = 0;
    if (format == LOG_JSON)
        line->bytes[line->length++] = '{';
    log_line_text(line, "ts", stamp, sizeof stamp);
}

/* Ends it, newline included. Nothing may follow. */
static void log_line_end(log_line *line)
{
    if (line->format == LOG_JSON)
        line->bytes[line->length++] = '}';
    line->bytes[line->length++] = '\n';
}

/* ---- events ---- */

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

static void log_add_field(log_line *line, const field *f, const cb_event *event)
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
        log_add_field(&line, &fields[i], event);
    log_line_end(&line);
    /* A reader that is gone or full must not stop a worker: such a line is lost. */
    while (write(to->fd, line.bytes, line.length) < 0 && errno == EINTR)
        ;
    errno = saved;
}
