/* Telling what a replay found. */
#include "replay_report.h"

#include <ctype.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const int64_t patience_ms = 2000, between_ms = 500;
static const char json_begin[] = "{\"diverged\":[";

static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void report_init(replay_report *r, bool json)
{
    *r = (replay_report){ .json = json,
                          .progress = isatty(STDERR_FILENO) == 1,
                          .began_ms = clock_ms() };
}

void report_clear(replay_report *r)
{
    if (r->shown_ms > 0)
        fputs("\r\033[K", stderr);
    r->shown_ms = 0;
}

static void print_json(const cb_process_row *row, const char *why, bool first)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "process_id", json_object_new_string(row->process_id.text));
    json_object_object_add(o, "process_type", json_object_new_string(row->process_type));
    json_object_object_add(o, "version", json_object_new_int(row->version));
    json_object_object_add(o, "status", json_object_new_string(row->status));
    json_object_object_add(o, "why", json_object_new_string(why));
    printf(
        "%s\n%s", first ? json_begin : ",",
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
}

/* One line, whatever the names of steps are made of. */
static void print_line(const cb_process_row *row, const char *why)
{
    printf("%s  %s  version %d  ", row->process_id.text, row->process_type, row->version);
    for (; *why; why++)
        putchar(iscntrl((unsigned char)*why) ? ' ' : *why);
    putchar('\n');
}

void report_finding(replay_report *r, const cb_process_row *row, const char *why)
{
    report_clear(r);
    if (r->json)
        print_json(row, why, r->diverged == 0);
    else
        print_line(row, why);
    r->diverged++;
}

void report_progress(replay_report *r)
{
    int64_t now = r->progress ? clock_ms() : 0;

    if (!r->progress || now - r->began_ms < patience_ms || now - r->shown_ms < between_ms)
        return;
    fprintf(stderr, "\r\033[K%" PRId64 " checked, %" PRId64 " would diverge …", r->checked,
            r->diverged);
    r->shown_ms = now;
}

void report_end(replay_report *r)
{
    report_clear(r);
    if (r->json) {
        printf("%s],\"checked\":%" PRId64 ",\"skipped\":{\"unknown_type\":%" PRId64
               ",\"newer_version\":%" PRId64 ",\"too_large\":%" PRId64 "}}\n",
               r->diverged ? "\n" : json_begin, r->checked, r->unknown, r->newer, r->too_large);
        return;
    }
    printf("%" PRId64 " checked, %" PRId64 " would diverge, %" PRId64 " skipped", r->checked,
           r->diverged, r->unknown + r->newer + r->too_large);
    if (r->unknown + r->newer + r->too_large > 0)
        printf(" (%" PRId64 " of types that are not in this program, %" PRId64
               " written by newer code",
               r->unknown, r->newer);
    if (r->too_large > 0)
        printf(", %" PRId64 " too large for any run", r->too_large);
    if (r->unknown + r->newer + r->too_large > 0)
        putchar(')');
    putchar('\n');
}
