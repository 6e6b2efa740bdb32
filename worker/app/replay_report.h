/* What --replay tells: a line for each finding as it is made, a summary at the end. */
#ifndef APP_REPLAY_REPORT_H
#define APP_REPLAY_REPORT_H

#include <commandbus/process_row.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool json;
    bool progress; /* stderr is a terminal */
    int64_t began_ms, shown_ms;
    int64_t checked, diverged;
    int64_t unknown;   /* skipped: their type is not in this program */
    int64_t newer;     /* skipped: written by newer code, which this program leaves alone */
    int64_t too_large; /* skipped: no run loads them; they are parked */
} replay_report;

void report_init(replay_report *r, bool json);
/* This process would not go on. */
void report_finding(replay_report *r, const cb_process_row *row, const char *why);
/* Another process is done with: on a terminal, says now and then how far it is. */
void report_progress(replay_report *r);
void report_end(replay_report *r);
/* Takes the progress away, so that something else can be said. */
void report_clear(replay_report *r);

#endif
