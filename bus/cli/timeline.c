/* The audit trail of a command as a story. */
#include "timeline.h"

#include "moment.h"
#include "output.h"

#include <stdio.h>
#include <string.h>

/* To the millisecond, whatever trailing zeros PostgreSQL left out. */
static void print_time(const char *text)
{
    const char *fraction = text ? strchr(text, '.') : NULL;

    if (!fraction) {
        printf("%s", text ? text : "");
        return;
    }
    size_t digits = strspn(fraction + 1, "0123456789");
    const char *zone = fraction + 1 + digits;
    printf("%.*s%.*s%s", (int)(fraction + 1 - text), text, digits < 3 ? (int)digits : 3,
           fraction + 1, &"000"[digits < 3 ? digits : 3]);
    printf("%s", zone);
}

/* " label value", or nothing. */
static void print_fact(const cb_rows *trail, size_t row, const char *column, const char *label)
{
    const char *value = cb_rows_get(trail, row, column);

    if (!value)
        return;
    printf("  %s ", label);
    output_plain(stdout, value);
}

static size_t longest_event(const cb_rows *trail)
{
    size_t longest = 0;

    for (size_t row = 0; row < cb_rows_count(trail); row++) {
        const char *event = cb_rows_get(trail, row, "event_type");
        if (event && strlen(event) > longest)
            longest = strlen(event);
    }
    return longest;
}

void timeline_print(const cb_rows *trail)
{
    int width = (int)longest_event(trail);
    double first = 0, at;

    if (cb_rows_count(trail) == 0)
        puts("no audit records: their retention is over");
    for (size_t row = 0; row < cb_rows_count(trail); row++) {
        const char *time = cb_rows_get(trail, row, "at"),
                   *event = cb_rows_get(trail, row, "event_type");
        const char *details = cb_rows_get(trail, row, "details");

        print_time(time);
        if (moment_parse(time, &at)) {
            first = row == 0 ? at : first;
            printf("  %+10.3fs", at - first);
        }
        printf("  %-*s", width, event ? event : "");
        print_fact(trail, row, "attempt", "attempt");
        print_fact(trail, row, "worker", "worker");
        print_fact(trail, row, "operator", "operator");
        print_fact(trail, row, "db_user", "as");
        if (details) {
            fputs("  ", stdout);
            output_plain(stdout, details);
        }
        putchar('\n');
    }
}
