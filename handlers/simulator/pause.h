/* Waits that end when the simulator does. */
#ifndef SIMULATOR_PAUSE_H
#define SIMULATOR_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int event; /* readable from the moment on that everything is to end */
} pauses;

bool pauses_init(pauses *p);
void pauses_done(pauses *p);
/* Wakes all who wait, now and later. */
void pauses_end(pauses *p);

/* False when it was cut short because the simulator ends. */
bool pause_for(const pauses *p, int64_t ms);
/* Until the caller on this socket hangs up, at most so long. */
void pause_until_gone(const pauses *p, int socket, int64_t ms);

int64_t now_ms(void);

#endif
