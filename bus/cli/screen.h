/* The whole terminal as a picture that is drawn again and again. One at a time. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>

/* True when stdout is a terminal that can do it. */
bool screen_is_possible(void);

/* Takes the terminal: another screen, no cursor, keys without Enter. It is given back by screen_leave,
 * and when a second signal ends the program because the first was not heard. */
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

#endif
