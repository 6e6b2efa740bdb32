/* Quoting, escaping and cutting. */
#include "log_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "json_escape.h"
#include "utf8.h"

static const char ellipsis[] = "\u2026";
static const char replacement[] = "\uFFFD"; /* for what is no UTF-8 */

/* Characters beside those of ASCII that could break or turn around a line in somebody's terminal or viewer. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    { 0x80, 0x9F },
    { 0x2028, 0x202E },
    { 0x2066, 0x2069 },
    { 0xFEFF, 0xFEFF },
};

static bool is_hidden(uint32_t character)
{
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        if (character >= hidden[i].first && character <= hidden[i].last)
            return true;
    }
    return false;
}

/* Writes the character at *at, escaped, into `out` (which has 8 bytes) and moves *at behind it.
 * logfmt and JSON need the same escapes. */
static size_t escape(const char **at, char *out)
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
    if (is_hidden(character))
        return (size_t)snprintf(out, 8, "\\u%04x", (unsigned)(character & 0xFFFF));
    memcpy(out, start, n);
    return n;
}

static bool put(log_line *line, const char *bytes, size_t n)
{
    const size_t end = 2; /* room for a brace and the newline */

    if (line->length + n + end > sizeof line->bytes)
        return false;
    memcpy(line->bytes + line->length, bytes, n);
    line->length += n;
    return true;
}

static bool put_escaped(log_line *line, const char *value, size_t most)
{
    const size_t start = line->length, tail = sizeof ellipsis - 1;
    size_t cut = start; /* the longest beginning after which the ellipsis still fits */

    while (*value) {
        char piece[8];
        size_t n = escape(&value, piece);
        if (line->length - start + n > most) {
            line->length = cut;
            return put(line, ellipsis, tail);
        }
        if (!put(line, piece, n))
            return false;
        if (line->length - start + tail <= most)
            cut = line->length;
    }
    return true;
}

/* Whether logfmt can do without quotes. */
static bool is_plain(const char *value)
{
    const char *c = value;

    while (*c > ' ' && *c < 0x7F && *c != '"' && *c != '=' && *c != '\\')
        c++;
    return *value && !*c;
}

static bool put_key(log_line *line, const char *key)
{
    char text[64];
    int n = line->format == LOG_JSON
                ? snprintf(text, sizeof text, "%s\"%s\":", line->length > 1 ? "," : "", key)
                : snprintf(text, sizeof text, "%s%s=", line->length > 0 ? " " : "", key);

    return put(line, text, (size_t)n);
}

/* A value that needs no escaping. */
static void raw_field(log_line *line, const char *key, const char *value)
{
    size_t before = line->length;

    if (!put_key(line, key) || !put(line, value, strlen(value)))
        line->length = before;
}

void log_line_text(log_line *line, const char *key, const char *value, size_t most)
{
    size_t before = line->length;
    const char *quote = line->format == LOG_JSON || !is_plain(value) ? "\"" : "";

    if (!put_key(line, key) || !put(line, quote, strlen(quote)) ||
        !put_escaped(line, value, most) || !put(line, quote, strlen(quote)))
        line->length = before;
}

void log_line_integer(log_line *line, const char *key, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRId64, value);
    raw_field(line, key, digits);
}

void log_line_real(log_line *line, const char *key, double value)
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
    raw_field(line, key, digits);
}

void log_line_begin(log_line *line, log_format format)
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

void log_line_end(log_line *line)
{
    if (line->format == LOG_JSON)
        line->bytes[line->length++] = '}';
    line->bytes[line->length++] = '\n';
}
