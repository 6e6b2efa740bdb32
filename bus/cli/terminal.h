/* What is drawn on a terminal: the whole of it as a picture, or how far a piece of work is. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "cli.h"

#include <stdbool.h>
#include <stddef.h>

/* Seconds of a clock that only goes forward. */
double terminal_clock(void);

/* The whole terminal as a picture that is drawn again and again. One at a time. */

/* True when stdout is a terminal that can do it. */
bool screen_is_possible(void);

/* Takes the terminal: another screen, no cursor, keys without Enter. It is given back by
 * screen_leave, and when a second signal ends the program because the first was not heard. */
void screen_enter(void);
void screen_leave(void);

typedef enum {
    SCREEN_TIME,    /* the seconds are over */
    SCREEN_RESIZED, /* draw again */
    SCREEN_QUIT,    /* q, Ctrl-C or a signal that asks to end */
} screen_event;

screen_event screen_wait(double seconds);

/* Draws lines of text, cut to the terminal's size. */
void screen_draw(const char *text);

/* How far a long piece of work is, on stderr; and Ctrl-C between two of its pieces. */
typedef struct {
    const char *what;
    size_t total;            /* 0: nobody knows */
    bool quiet, shown, told; /* told: in plain lines */
    double start, last;      /* by terminal_clock */
} progress;

/* From here on Ctrl-C only asks to stop; a second one ends the program. Nothing is ever drawn
 * unless stderr is a terminal, nor with --quiet. */
void progress_start(progress *p, const cli *c, const char *what, size_t total);

/* For work that others do, and that may take hours: where no bar is drawn, a plain line now and
 * then, unless --quiet. */
void progress_tell(progress *p);

/* Draws at most ten times a second. */
void progress_show(progress *p, size_t done);

/* Wipes the line. Ctrl-C is itself again. */
void progress_end(progress *p);

double progress_seconds(const progress *p);

/* True after Ctrl-C or SIGTERM since progress_start: finish what is running, then report. */
bool progress_is_interrupted(void);

#endif
