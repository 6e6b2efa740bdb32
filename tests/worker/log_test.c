/* Events as lines: one event, one line, whatever is in it. WRK.21. */
#include "log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <json-c/json.h>
#include <locale.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What log_event writes, without the end of the line. The caller frees it. */
static char *logged(const cb_event *event, log_format format)
{
    int fds[2];
    char *text = calloc(1, 2 * LOG_LINE_MOST);

    cr_assert_eq(pipe(fds), 0);
    log_sink sink = { .fd = fds[1], .level = CB_LEVEL_DEBUG, .format = format };
    log_event(event, &sink);
    close(fds[1]);
    ssize_t n = read(fds[0], text, 2 * LOG_LINE_MOST - 1);
    close(fds[0]);
    cr_assert_gt(n, 0);
    cr_assert_eq(text[n - 1], '\n');
    text[n - 1] = '\0';
    return text;
}

/* The line behind its time. */
static const char *behind_ts(const char *line)
{
    return strchr(line, 'Z') + 1;
}

static bool matches(const char *text, const char *pattern)
{
    regex_t regex;

    cr_assert_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

/* `event` in a format reads so. */
static void expect_written(const cb_event *event, log_format format, const char *expected)
{
    char *line = logged(event, format);

    cr_expect_str_eq(behind_ts(line), expected, "%s", line);
    free(line);
}

/* The value of one field of a JSON line. The caller frees it. */
static char *json_field(const char *line, const char *name)
{
    json_object *object = json_tokener_parse(line), *value = NULL;

    cr_assert_not_null(object, "no JSON: %s", line);
    cr_assert(json_object_object_get_ex(object, name, &value), "no %s: %s", name, line);
    char *text = strdup(json_object_get_string(value));
    json_object_put(object);
    return text;
}

static const cb_event completed = { .level = CB_LEVEL_INFO,
                                    .name = "command.completed",
                                    .domain = "fx",
                                    .command_type = "BookFx",
                                    .lease_no = 7,
                                    .attempt = 1,
                                    .took_ms = 42.1234,
                                    .retry_seconds = 10 };

Test(log, an_event_is_one_line_of_logfmt)
{
    expect_written(
        &completed, LOG_LOGFMT,
        " level=info event=command.completed domain=fx command_type=BookFx lease_no=7 attempt=1 "
        "took_ms=42.123 retry_seconds=10");
}

Test(log, an_event_is_one_line_of_json)
{
    expect_written(&completed, LOG_JSON,
                   "\",\"level\":\"info\",\"event\":\"command.completed\",\"domain\":\"fx\","
                   "\"command_type\":\"BookFx\",\"lease_no\":7,\"attempt\":1,\"took_ms\":42.123,"
                   "\"retry_seconds\":10}");
}

Test(log, the_time_is_utc_with_microseconds)
{
    setenv("TZ", "Asia/Tokyo", 1);
    char *line = logged(&completed, LOG_LOGFMT);
    struct tm utc = { 0 };

    cr_expect(matches(line, "^ts=20[0-9-]{8}T[0-9:]{8}\\.[0-9]{6}Z "), "%s", line);
    cr_assert_not_null(strptime(line, "ts=%Y-%m-%dT%H:%M:%S", &utc));
    double apart = difftime(time(NULL), timegm(&utc));
    cr_expect(apart > -60 && apart < 60, "%g s apart: %s", apart, line);
    free(line);
}

Test(log, a_value_is_quoted_when_it_needs_it)
{
    const char *const values[][2] = {
        { "plain-1.2/3:x", "plain-1.2/3:x" },
        { "two words", "\"two words\"" },
        { "a=b", "\"a=b\"" },
        { "say \"no\"", "\"say \\\"no\\\"\"" },
        { "back\\slash", "\"back\\\\slash\"" },
        { "line\none\r\ttwo", "\"line\\none\\r\\ttwo\"" },
        { "bell\a esc\x1b[31m del\x7f", "\"bell\\u0007 esc\\u001b[31m del\\u007f\"" },
        { "€uro", "\"€uro\"" },
    };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        cb_event event = { .name = "x.y", .error = values[i][0] };
        char expected[256];
        snprintf(expected, sizeof expected, " level=debug event=x.y error=%s", values[i][1]);
        expect_written(&event, LOG_LOGFMT, expected);
    }
}

Test(log, what_is_empty_is_left_out)
{
    cb_event event = { .name = "x.y", .error = "broken", .hint = "", .error_code = "" };

    expect_written(&event, LOG_LOGFMT, " level=debug event=x.y error=broken");
}

Test(log, no_character_can_break_or_turn_a_line)
{
    /* NEL, line separator, right-to-left override, isolate, C1's CSI */
    cb_event event = { .name = "x.y",
                       .error = "\xC2\x85|\xE2\x80\xA8|\xE2\x80\xAE|\xE2\x81\xA6|\xC2\x9B" };

    expect_written(&event, LOG_LOGFMT,
                   " level=debug event=x.y error=\"\\u0085|\\u2028|\\u202e|\\u2066|\\u009b\"");
}

Test(log, invalid_utf8_is_replaced)
{
    /* a lone continuation, cut off, overlong, surrogate, beyond the last, 0xFF */
    const char *const broken[] = { "\x80",         "\xE2\x82",         "\xC0\xAF",
                                   "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF" };

    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        cb_event event = { .name = "x.y", .error = broken[i] };
        char *line = logged(&event, LOG_JSON), *value = json_field(line, "error");
        cr_expect_eq(strncmp(value, "\xEF\xBF\xBD", 3), 0, "%zu: %s", i, line);
        for (const char *c = value; *c; c += 3)
            cr_expect_eq(strncmp(c, "\xEF\xBF\xBD", 3), 0, "%zu: %s", i, line);
        free(value);
        free(line);
    }
}

Test(log, a_long_value_is_cut_between_characters_and_says_so)
{
    char quotes[3000], euros[3001];

    memset(quotes, '"', sizeof quotes - 1);
    quotes[sizeof quotes - 1] = '\0';
    for (size_t i = 0; i < 1000; i++)
        memcpy(euros + 3 * i, "€", 3);
    euros[3000] = '\0';
    /* One byte in front moves every escape to the other side of the limit. */
    for (size_t shift = 0; shift < 4; shift++) {
        cb_event event = { .name = "x.y", .error = quotes, .hint = euros };
        memset(quotes, 'x', shift);
        memset(euros, 'x', shift == 3 ? 3 : 0);

        char *line = logged(&event, LOG_JSON);
        char *error = json_field(line, "error"), *hint = json_field(line, "hint");
        size_t n = strlen(error), m = strlen(hint);
        cr_expect_str_eq(error + n - 3, "…");
        cr_expect_str_eq(hint + m - 3, "…");
        cr_expect(n > 500 && n < 520, "%zu", n);
        cr_expect(m > 500 && m <= 512, "%zu", m);
        free(error);
        free(hint);
        free(line);
    }
}

Test(log, a_value_that_just_fits_is_not_cut)
{
    char text[1026];
    cb_event event = { .name = "x.y", .error = text };

    memset(text, 'x', sizeof text);
    text[1024] = '\0';
    char *line = logged(&event, LOG_JSON), *value = json_field(line, "error");
    cr_expect_str_eq(value, text);
    free(value);
    free(line);

    text[1024] = 'x', text[1025] = '\0';
    line = logged(&event, LOG_JSON), value = json_field(line, "error");
    cr_expect_eq(strlen(value), 1024);
    cr_expect_str_eq(value + 1021, "…");
    free(value);
    free(line);
}

Test(log, the_worst_event_fits_into_one_atomic_write_with_every_field)
{
    char worst[5000];
    cb_event event;
    size_t fields = 0;

    memset(worst, '\1', sizeof worst - 1); /* each becomes six bytes */
    worst[sizeof worst - 1] = '\0';
    event = (cb_event){ .level = CB_LEVEL_ERROR,
                        .name = worst,
                        .domain = worst,
                        .command_id = worst,
                        .correlation_id = worst,
                        .command_type = worst,
                        .process_id = worst,
                        .process_type = worst,
                        .step = worst,
                        .status = worst,
                        .lease_no = INT64_MIN,
                        .attempt = INT64_MIN,
                        .max_attempts = INT64_MIN,
                        .outcome = worst,
                        .verdict = worst,
                        .error_code = worst,
                        .error = worst,
                        .hint = worst,
                        .took_ms = -1e300,
                        .retry_seconds = -1e300,
                        .count = INT64_MIN,
                        .slots = INT64_MIN,
                        .in_flight = INT64_MIN,
                        .signal = INT64_MIN,
                        .connection = worst,
                        .set = worst,
                        .profile = worst,
                        .version = worst,
                        .address = worst,
                        .file = worst };

    char *line = logged(&event, LOG_JSON);
    json_object *object = json_tokener_parse(line);
    cr_assert_not_null(object, "%s", line);
    cr_expect_leq(strlen(line) + 1, 4096);
    json_object_object_foreach(object, key, value)
    {
        (void)key, (void)value;
        fields++;
    }
    cr_expect_eq(fields, 3 + 28, "%zu: %s", fields, line);
    json_object_put(object);
    free(line);
}

Test(log, every_field_of_an_event_has_a_name_here)
{
    /* A new field of cb_event needs a line in log.c: this counts them by their size. */
    size_t texts = 20, numbers = 9;

    cr_expect_eq(sizeof(cb_event), 8 + (texts + numbers) * 8);
}

Test(log, numbers_ignore_the_locale)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        cr_log_info("no German locale here; the code uses no locale either way");
    cb_event event = { .name = "x.y", .took_ms = 0.5, .retry_seconds = -1.25 };

    expect_written(&event, LOG_LOGFMT, " level=debug event=x.y took_ms=0.5 retry_seconds=-1.25");
}

Test(log, what_is_not_a_number_is_left_out)
{
    cb_event event = { .name = "x.y", .took_ms = strtod("inf", NULL), .count = 1 };

    expect_written(&event, LOG_LOGFMT, " level=debug event=x.y count=1");
}

Test(log, below_its_level_nothing_is_written)
{
    int fds[2];
    char byte;

    cr_assert_eq(pipe(fds), 0);
    log_sink sink = { .fd = fds[1], .level = CB_LEVEL_WARN };
    log_event(&completed, &sink);
    close(fds[1]);
    cr_expect_eq(read(fds[0], &byte, 1), 0);
    close(fds[0]);
}

Test(log, an_end_of_the_reader_is_survived_and_errno_kept)
{
    log_sink sink = { .fd = -1, .level = CB_LEVEL_DEBUG };

    errno = EDOM;
    log_event(&completed, &sink);
    cr_expect_eq(errno, EDOM);
}

static void *log_many(void *sink)
{
    char text[900];
    cb_event event = { .level = CB_LEVEL_INFO, .name = "x.y", .error = text };

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 500; i++)
        log_event(&event, sink);
    return NULL;
}

Test(log, lines_of_many_threads_do_not_mix)
{
    const char start[] = " level=info event=x.y error=";
    int fds[2], lines = 0;
    pthread_t threads[4];
    char line[2 * LOG_LINE_MOST];

    cr_assert_eq(pipe(fds), 0);
    log_sink sink = { .fd = fds[1], .level = CB_LEVEL_DEBUG, .format = LOG_LOGFMT };
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, log_many, &sink), 0);

    FILE *in = fdopen(fds[0], "r");
    while (lines < 2000 && fgets(line, sizeof line, in)) {
        const char *behind = behind_ts(line);
        lines++;
        cr_assert_eq(strncmp(line, "ts=", 3), 0, "%s", line);
        cr_assert_eq(strncmp(behind, start, sizeof start - 1), 0, "%s", line);
        behind += sizeof start - 1;
        cr_assert_eq(strspn(behind, "x"), 899, "%s", line);
        cr_assert_str_eq(behind + 899, "\n");
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(lines, 2000);
    fclose(in);
    close(fds[1]);
}
